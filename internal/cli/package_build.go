package cli

// Packages of HTCondor are built on the user's machine, from Debian's packages or from an installed HTCondor, without
// root. Both archives are written to a folder, a temporary one unless --out names it; corrald then imports them and
// signs them with its own key.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/packages"
	packaging "github.com/corral-pilot/corral/packages/htcondor"
)

// defaultSuite is the newest stable release of Debian that includes HTCondor.
const defaultSuite = "trixie"

func (v packageVerbs) buildCommand() *cli.Command {
	return &cli.Command{
		Name: "build",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from-debian", Value: defaultSuite,
				Usage: "use Debian's `SUITE`, from the mirror that this machine's apt uses"},
			&cli.StringFlag{Name: "from",
				Usage: "use the HTCondor installed in `DIR`, with bin, sbin and libexec/condor"},
			&cli.StringFlag{Name: "out", Usage: "keep the archives in `DIR`"},
			&cli.BoolFlag{Name: "no-import", Usage: "do not change the catalog"},
		},
		Action: v.build,
	}
}

// build contacts corrald before it starts to build, because building takes a minute and downloads HTCondor.
func (v packageVerbs) build(c *cli.Context) error {
	switch {
	case c.IsSet("from") && c.IsSet("from-debian"):
		return corral.ErrorAt(corral.Invalid, "--from", "cannot be used with --from-debian")
	case c.Bool("no-import") && c.String("out") == "":
		return corral.ErrorAt(corral.Invalid, "--no-import", "requires --out, as the archives would be lost")
	}
	var cl *api.Client
	if !c.Bool("no-import") { // before building, because corrald may not be running
		var err error
		if cl, err = connect(c); err != nil {
			return err
		}
		if _, err := cl.Packages(c.Context, api.Filter{}); err != nil {
			return err
		}
	}
	out, err := outFolder(c.String("out"))
	if err != nil {
		return err
	}
	if c.String("out") == "" {
		defer os.RemoveAll(out)
	}
	source := htcondorSource{installed: c.String("from"), suite: c.String("from-debian")}
	built, err := source.pack(c.Context, out, func(step string) { v.say("%s", step) })
	if err != nil {
		return err
	}
	if cl == nil {
		return builtTable.list(v.printer, built)
	}
	imported, err := v.importBuilt(c.Context, cl, built)
	if err != nil {
		return err
	}
	return packageTable.list(v.printer, imported)
}

// outFolder creates the folder for archives, or a temporary folder if name is empty. The folder is readable by others,
// because corrald, which may run under another user, reads the archives there.
func outFolder(name string) (string, error) {
	if name != "" {
		dir, err := filepath.Abs(name)
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err != nil {
			return "", corral.ErrorAt(corral.Invalid, "--out", "%w", err)
		}
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "corral-build-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return dir, wrap.Errorf(err, "making a folder for the archives")
}

// A builtPackage is a package together with its new archive.
type builtPackage struct {
	packages.Package
	File string `json:"file"`
}

// An htcondorSource is the source of packages of HTCondor: an installation in a folder or, if that is empty, a suite of
// Debian, whose packages are unpacked without being installed.
type htcondorSource struct{ installed, suite string }

// pack writes both packages of an HTCondor release into out, and reports its steps through say.
func (s htcondorSource) pack(ctx context.Context, out string, say func(string)) (built []builtPackage, err error) {
	scratch, err := os.MkdirTemp("", "corral-htcondor-")
	if err != nil {
		return nil, fmt.Errorf("making a folder to unpack in: %w", err)
	}
	defer os.RemoveAll(scratch)
	from, err := s.find(ctx, scratch, say)
	if err != nil {
		return nil, err
	}
	for _, what := range []string{packaging.Worker, packaging.Pool} {
		say(fmt.Sprintf("packing %s of HTCondor %s", what, from.Version))
		b, err := packInto(ctx, from, what, out)
		if err != nil {
			return nil, err
		}
		built = append(built, b)
	}
	return built, nil
}

// find returns the HTCondor installation; Debian's packages are unpacked in scratch.
func (s htcondorSource) find(ctx context.Context, scratch string, say func(string)) (packaging.Installation, error) {
	if s.installed != "" {
		dir, err := filepath.Abs(s.installed)
		if err != nil {
			return packaging.Installation{}, corral.ErrorAt(corral.Invalid, "--from", "%w", err)
		}
		return packaging.Find(dir)
	}
	layout, err := xdg.Find()
	if err != nil {
		return packaging.Installation{}, err
	}
	d := packaging.Debian{Suite: s.suite, Cache: filepath.Join(layout.Downloads(), "debian"), Progress: say}
	return d.Unpack(ctx, scratch)
}

// packInto writes the package, atomically, to a file of out with the package's name.
func packInto(ctx context.Context, from packaging.Installation, what, out string) (b builtPackage, err error) {
	if err := context.Cause(ctx); err != nil {
		return b, err
	}
	f, err := os.CreateTemp(out, ".build-*")
	if err != nil {
		return b, fmt.Errorf("making the archive: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if b.Package, err = from.Pack(f, what); err != nil {
		return b, err
	}
	b.File = filepath.Join(out, b.Name+".tar.gz")
	if err = f.Chmod(0o644); err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), b.File)
	}
	return b, wrap.Errorf(err, "making the archive")
}

// importBuilt imports the packages that are not in the catalog yet.
func (v packageVerbs) importBuilt(ctx context.Context, cl *api.Client, built []builtPackage) ([]corral.Package, error) {
	var imported []corral.Package
	for _, b := range built {
		k, err := cl.Package(ctx, b.Digest)
		switch {
		case err == nil:
			v.say("package %s is already in the catalog", k.Name)
		case corral.KindOf(err) == corral.NotFound:
			k, err = cl.ImportPackage(ctx, api.NewPackage{Source: b.File, Sign: true}, "")
		}
		if err != nil {
			return nil, err
		}
		imported = append(imported, k)
	}
	return imported, nil
}

var builtTable = listing[builtPackage]{
	id: func(b builtPackage) string { return b.File },
	columns: []column[builtPackage]{
		{"name", func(b builtPackage) any { return b.Name }},
		{"size", func(b builtPackage) any { return fmt.Sprintf("%.1f MiB", float64(b.SizeBytes)/(1<<20)) }},
		{"digest", func(b builtPackage) any { return b.Digest[:min(len(b.Digest), 19)] + "…" }},
		{"file", func(b builtPackage) any { return b.File }},
	},
}
