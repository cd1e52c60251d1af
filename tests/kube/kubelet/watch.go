//go:build !kube134

package main

import (
	"context"

	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

func watch(ctx context.Context, plugins pluginmanager.PluginManager, ready config.SourcesReady) {
	plugins.Run(ctx, ready, make(chan struct{}))
}
