// Command e2e-sets prints the releases of JobSet and LeaderWorkerSet whose own end-to-end tests are built beside it, as
// e2e-jobset and e2e-lws: those are test binaries, which know no version.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	_ "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	_ "sigs.k8s.io/lws/api/leaderworkerset/v1"
)

func main() {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fmt.Fprintln(os.Stderr, "e2e-sets: built without module information")
		os.Exit(1)
	}
	var found []string
	for _, module := range info.Deps {
		name := strings.TrimPrefix(module.Path, "sigs.k8s.io/")
		if name == "jobset" || name == "lws" {
			found = append(found, name+" "+module.Version)
		}
	}
	fmt.Println(strings.Join(found, ", "))
}
