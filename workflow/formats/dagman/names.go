package dagman

import (
	"cmp"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// name assigns a name to each node. If DAGMan accepts it, this is the id of the node's task or the name of its sub-DAG,
// without the names of the enclosing sub-DAGs.
func (w *writer) name() {
	files := make(workflow.Names)
	dag := legal(cmp.Or(strings.TrimSuffix(w.wf.Name, ".dag"), "workflow"))
	for k := range w.parts { // outer parts first
		p := &w.parts[k]
		p.file = dag
		if k > 0 {
			p.prefix = p.Sub.Name + "+"
			p.file = legal(dag + "." + p.Sub.Name)
		}
		p.file = files.Take(p.file) + ".dag"
		w.nameIn(k)
	}
}

// nameIn names the nodes of a part.
func (w *writer) nameIn(k int) {
	p := &w.parts[k]
	taken := make(workflow.Names)
	for _, item := range p.Items {
		if own := w.called(item, p); legal(own) == own && taken[own] == 0 {
			*w.nodeOf(item) = taken.Take(own)
		}
	}
	for _, item := range p.Items {
		if node := w.nodeOf(item); *node == "" {
			*node = taken.Take(legal(w.called(item, p)))
		}
	}
}

// called returns the name of an item in its part.
func (w *writer) called(item int, p *part) string {
	name := ""
	if item >= 0 {
		name = w.wf.Tasks[item].ID
	} else {
		name = w.parts[^item].Sub.Name
	}
	if p.Sub == nil {
		return name
	}
	return strings.TrimPrefix(name, p.Sub.Name+"+")
}

// nodeOf returns a pointer to the name of an item's node.
func (w *writer) nodeOf(item int) *string {
	if item >= 0 {
		return &w.nodes[item]
	}
	return &w.parts[^item].node
}

// maxNameBytes is the maximum length of a name in bytes; it leaves space for extensions in the 255 bytes of a file
// name.
const maxNameBytes = 200

// legal converts a text to a valid name of a node or a file, which contains only letters, digits and . _ - = : @ %.
func legal(text string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("._-=:@%", r):
			return r
		}
		return '_'
	}, text)
	name = name[:min(len(name), maxNameBytes)]
	if strings.HasSuffix(name, ".condor") { // HTCondor creates NAME.condor.sub for a sub-DAG
		name += "_"
	}
	for _, word := range []string{"PARENT", "CHILD", allNodes, "", ".", ".."} {
		if strings.EqualFold(name, word) {
			return "_" + name
		}
	}
	return name
}
