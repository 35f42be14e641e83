// Command hyper is the control plane's three servers in one file, told apart by the name it is called by.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": manager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	command, known := commands[filepath.Base(os.Args[0])]
	if !known {
		fmt.Fprintf(os.Stderr, "hyper: called as %q, expected kube-apiserver, kube-controller-manager or kube-scheduler\n", os.Args[0])
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
