// Package english checks the English of the repository: comments and messages in Go files, help texts, and Markdown.
//
// It has no code, only tests. The table in rules_test.go lists constructions that a technical editor would rewrite,
// with the reason, the rewrite, and examples that a rule must and must not match. A rule looks for words and does not
// parse sentences, so each rule is narrow enough that nearly everything it finds needs the rewrite.
//
// The file findings.txt records the findings of each folder. Their number may only fall: a new finding fails the test,
// which prints the text and the rewrite. After findings were rewritten, or files were moved, record the new numbers:
//
//	go test ./internal/archtest/english -update
package english
