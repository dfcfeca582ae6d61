// Berth's playground: the parts of one Kubernetes control plane in one static program.
//
// The part is chosen by the name the program is called by, or by its first argument:
//
//	berth-kube etcd --data-dir …
//	berth-kube kube-apiserver --etcd-servers …
//
// With BERTH_LIFELINE=stdin in the environment the program ends at once when its standard input is
// closed: whoever holds the other end of that pipe may be killed at any moment and leaves nothing.
//
// The folders 1.36 and 1.37 each hold the go.mod of one release; this file serves them all.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and the machine may have no zone files

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info on /metrics
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// part runs one program with its arguments (args[0] is its own name) and gives its exit code.
type part func(args []string) int

// parts is the whole table. A file beside this one adds its own line in an init function.
var parts = map[string]part{
	"etcd":                    etcd,
	"kube-apiserver":          kubernetes(apiserver.NewAPIServerCommand),
	"kube-scheduler":          kubernetes(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kube-controller-manager": kubernetes(controllermanager.NewControllerManagerCommand),
}

func main() {
	args := append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)
	if _, known := parts[args[0]]; !known {
		args = args[1:]
	}
	if len(args) > 0 {
		if run, known := parts[args[0]]; known {
			os.Args = args // the parts read their flags from here
			if os.Getenv("BERTH_LIFELINE") == "stdin" {
				go endWithLifeline()
			}
			os.Exit(run(args))
		}
	}
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(os.Stderr, "say which part to run: %s\n", strings.Join(names, ", "))
	os.Exit(2)
}

// endWithLifeline ends the program without a goodbye: nobody is left to wait for one. What etcd has
// written stays with the operating system, so data survive.
func endWithLifeline() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func etcd(args []string) int {
	etcdmain.Main(args)
	return 0
}

// kubernetes makes a part of a command as upstream's own main functions run it. The command is
// built only when its part was chosen, for building one registers flags and metrics.
func kubernetes(command func() *cobra.Command) part {
	return func([]string) int { return cli.Run(command()) }
}
