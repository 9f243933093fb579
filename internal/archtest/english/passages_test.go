package english

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// A passage is text that a person reads as a whole: a paragraph of a comment or a document, or one message.
type passage struct {
	text  string
	lines []lineStart // ascending
}

// A lineStart says that the text from offset on stands in this line of the file.
type lineStart struct{ offset, line int }

// add appends text of the given line, separated by a space.
func (p *passage) add(text string, line int) {
	if p.text != "" {
		p.text += " "
	}
	p.extend(text, line)
}

// extend appends text of the given line directly.
func (p *passage) extend(text string, line int) {
	p.lines = append(p.lines, lineStart{len(p.text), line})
	p.text += text
}

// place returns the line of the file that holds the text at offset.
func (p *passage) place(offset int) string {
	after := sort.Search(len(p.lines), func(i int) bool { return p.lines[i].offset > offset })
	return strconv.Itoa(p.lines[after-1].line)
}

// A collector gathers lines into passages.
type collector struct {
	passages []passage
	open     passage
}

func (c *collector) end() {
	if c.open.text != "" {
		c.passages = append(c.passages, c.open)
	}
	c.open = passage{}
}

// goPassages returns the comments of a Go file and its messages: in production code every literal that reads as prose,
// in tests what they print when they fail.
func goPassages(name string, text []byte) ([]passage, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var c collector
	for _, group := range file.Comments {
		for _, comment := range group.List {
			c.comment(comment.Text, files.Position(comment.Pos()).Line)
		}
		c.end()
	}
	l := literals{files: files}
	if strings.HasSuffix(name, "_test.go") {
		ast.Inspect(file, l.failures)
	} else {
		ast.Inspect(file, l.all)
	}
	return append(c.passages, l.passages...), nil
}

var (
	directive = regexp.MustCompile(`^//[a-z]+:`)
	listItem  = regexp.MustCompile(`^\s*([-*+]|\d+[.)])\s+`)
)

// comment adds one comment. Indented lines that do not belong to a list are code.
func (c *collector) comment(text string, line int) {
	if directive.MatchString(text) {
		return
	}
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "//"), "/*"), "*/")
	for i, s := range strings.Split(text, "\n") {
		switch trimmed := strings.TrimSpace(s); {
		case trimmed == "", strings.HasPrefix(strings.TrimPrefix(s, " "), "\t"):
			c.end()
		case listItem.MatchString(s):
			c.end()
			c.open.add(trimmed, line+i)
		default:
			c.open.add(trimmed, line+i)
		}
	}
}

// literals gathers the literals of a file that are messages.
type literals struct {
	files    *token.FileSet
	passages []passage
}

var (
	prose      = regexp.MustCompile(`[A-Za-z]+[,:;]? [A-Za-z%]+[,:;]? [A-Za-z%]`)
	statements = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|PRAGMA|ALTER|DROP|FROM|WHERE|#!)\b?`)
	failure    = regexp.MustCompile(`^(Error|Errorf|Fatal|Fatalf|Log|Logf|New)$`)
)

// all visits every literal; a sum of literals is one message.
func (l *literals) all(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field:
		if n.Tag != nil {
			ast.Inspect(n.Type, l.all)
			return false
		}
	case *ast.BinaryExpr, *ast.BasicLit:
		var p passage
		l.join(&p, n.(ast.Expr))
		if prose.MatchString(p.text) && !statements.MatchString(p.text) {
			l.passages = append(l.passages, p)
		}
		return false
	}
	return true
}

// failures visits the arguments of the calls with which a test fails.
func (l *literals) failures(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && failure.MatchString(s.Sel.Name) {
		for _, arg := range call.Args {
			ast.Inspect(arg, l.all)
		}
	}
	return true
}

// join appends the text of a literal or of a sum of literals; a value between them stands as %v.
func (l *literals) join(p *passage, e ast.Expr) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			for i, s := range strings.SplitAfter(text, "\n") {
				p.extend(s, l.files.Position(e.Pos()).Line+i*strings.Count(e.Value[:1], "`"))
			}
		}
	case *ast.BinaryExpr:
		l.join(p, e.X)
		l.join(p, e.Y)
	default:
		p.extend("%v", l.files.Position(e.Pos()).Line)
		ast.Inspect(e, l.all)
	}
}

// markdownPassages returns the paragraphs of a document, without blocks of code.
func markdownPassages(text string) []passage {
	var c collector
	fenced, inList, code := false, false, true
	for i, s := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(s)
		indented := strings.HasPrefix(s, "    ") || strings.HasPrefix(s, "\t")
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
			c.end()
		case fenced:
		case trimmed == "":
			code = true // an indented line may begin a block of code
			c.end()
		case indented && code && !inList:
		case listItem.MatchString(s), strings.HasPrefix(trimmed, "|"), strings.HasPrefix(s, "#"):
			inList, code = listItem.MatchString(s), false
			c.end()
			c.open.add(trimmed, i+1)
		default:
			inList, code = inList && strings.HasPrefix(s, " "), false
			c.open.add(trimmed, i+1)
		}
	}
	c.end()
	return c.passages
}

// helpPassages returns the paragraphs of a help text without the names of commands and without the examples.
func helpPassages(text string) []passage {
	var c collector
	example := false
	for i, s := range strings.Split(text, "\n") {
		switch trimmed := strings.TrimSpace(s); {
		case strings.HasPrefix(s, "# "):
			example = false
			c.end()
		case trimmed == "":
			c.end()
		case trimmed == "EXAMPLE":
			example = true
		case !example:
			c.open.add(trimmed, i+1)
		}
	}
	c.end()
	return c.passages
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	quoted   = regexp.MustCompile(`"[^"]{1,200}"|“[^”]*”`)
	target   = regexp.MustCompile(`\]\([^)]*\)`)
)

// ownWords blanks code, quotations and the targets of links, and keeps every offset.
func ownWords(text string) string {
	for _, foreign := range []*regexp.Regexp{codeSpan, quoted, target} {
		text = foreign.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("_", len(s)) })
	}
	return text
}
