package profile

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed library/*.csv
var library embed.FS

// Library returns the names of the profiles that are included in Corral, sorted. They describe six scientific
// workflows, as printed in tables 5.3 to 5.8 of the thesis of 2012; library/README.md explains how they were converted.
// These profiles contain neither samples nor extremes.
func Library() []string {
	entries, err := library.ReadDir("library")
	if err != nil {
		panic(err) // unreachable: the folder is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	return names
}

// FromLibrary returns a new copy of the included profile with the given name; ok is false if Library does not list the
// name.
func FromLibrary(name string) (p *Profile, ok bool) {
	if !slices.Contains(Library(), name) {
		return nil, false
	}
	file := path.Join("library", name+".csv")
	f, err := library.Open(file)
	if err == nil {
		defer f.Close()
		p, err = ReadCSV(f, file)
	}
	if err != nil {
		panic(err) // unreachable: a test reads all included profiles
	}
	return p, true
}
