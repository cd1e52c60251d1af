//go:build !kube134

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache"
)

func watch(ctx context.Context, plugins pluginmanager.PluginManager, ready config.SourcesReady) {
	plugins.Run(ctx, ready, make(chan struct{}))
}

func getNode(node *v1.Node) func(context.Context) (*v1.Node, error) {
	return func(context.Context) (*v1.Node, error) { return node, nil }
}

// clients is told by the kubelet's server of device plugins.
type clients struct{ *counted }

func (c clients) PluginConnected(_ context.Context, resource string, client v1beta1.DevicePlugin) error {
	c.connected(resource, client)
	return nil
}

func (c clients) PluginDisconnected(_ klog.Logger, resource string) { c.disconnected(resource) }

func (c clients) PluginListAndWatchReceiver(_ klog.Logger, resource string, response *api.ListAndWatchResponse) {
	c.received(resource, response)
}

func newDeviceServer(path string, devices *counted) (cache.PluginHandler, error) {
	return v1beta1.NewServer(klog.Background(), path, nil, clients{devices})
}
