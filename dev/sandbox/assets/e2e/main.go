// Command e2e is the part of Kubernetes' own end-to-end tests that is about workloads and pods: [sig-apps], [sig-node].
// Upstream builds all of them as one test binary; this one takes the same flags, and E2E_NAMESPACE_LABELS ("a=b,c=d"),
// which every namespace gets that a test creates.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/e2e/apps"
	_ "k8s.io/kubernetes/test/e2e/common/node"
	_ "k8s.io/kubernetes/test/e2e/feature"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	"k8s.io/kubernetes/test/utils/image"
)

func main() {
	showVersion := flag.Bool("version", false, "print the version and exit")
	listImages := flag.Bool("images", false, "print the images that the tests name, a line each, and exit")
	testing.Init()
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	switch {
	case *showVersion:
		fmt.Println(version.Get())
	case *listImages:
		for _, each := range image.GetImageConfigs() {
			fmt.Println(each.GetE2EImage())
		}
	default:
		testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
		framework.AfterReadingAllFlags(&framework.TestContext)
		labelNamespaces(os.Getenv("E2E_NAMESPACE_LABELS"))
		testing.Main(matches, []testing.InternalTest{{Name: "TestE2E", F: e2e.RunE2ETests}}, nil, nil)
	}
}

func matches(_, _ string) (bool, error) { return true, nil }

func labelNamespaces(text string) {
	extra := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, found := strings.Cut(pair, "="); found {
			extra[key] = value
		}
	}
	framework.TestContext.CreateTestingNS = func(
		ctx context.Context, base string, client kubernetes.Interface, labels map[string]string,
	) (*v1.Namespace, error) {
		all := maps.Clone(extra)
		maps.Copy(all, labels)
		return framework.CreateTestingNS(ctx, base, client, all)
	}
}
