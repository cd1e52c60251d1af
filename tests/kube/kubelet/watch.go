//go:build !kube134

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

func watch(ctx context.Context, plugins pluginmanager.PluginManager, ready config.SourcesReady) {
	plugins.Run(ctx, ready, make(chan struct{}))
}

func getNode(node *v1.Node) func(context.Context) (*v1.Node, error) {
	return func(context.Context) (*v1.Node, error) { return node, nil }
}
