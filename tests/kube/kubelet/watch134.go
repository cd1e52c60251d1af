//go:build kube134

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

// Kubernetes 1.34 has no context there.
func watch(_ context.Context, plugins pluginmanager.PluginManager, ready config.SourcesReady) {
	plugins.Run(ready, make(chan struct{}))
}

func getNode(node *v1.Node) func() (*v1.Node, error) {
	return func() (*v1.Node, error) { return node, nil }
}
