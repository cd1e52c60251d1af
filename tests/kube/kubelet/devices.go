package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// deviceClient is what calls a device plugin.
type deviceClient interface {
	API() api.DevicePluginClient
}

// counted has the device plugins that are connected, and how many devices each of them said.
type counted struct {
	lock    sync.Mutex
	clients map[string]deviceClient
	devices map[string]int
}

func (c *counted) connected(resource string, client deviceClient) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.clients[resource] = client
}

func (c *counted) disconnected(resource string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.clients, resource)
	delete(c.devices, resource)
}

func (c *counted) received(resource string, response *api.ListAndWatchResponse) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.devices[resource] = 0
	for _, device := range response.Devices {
		if device.Health == api.Healthy {
			c.devices[resource]++
		}
	}
}

func (c *counted) count(resource string) int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.devices[resource]
}

// allocate asks for one container, as a kubelet does, and gives the answer as JSON.
func (c *counted) allocate(ctx context.Context, resource string, devices []string) (string, error) {
	c.lock.Lock()
	client := c.clients[resource]
	c.lock.Unlock()
	if client == nil {
		return "", fmt.Errorf("no device plugin for %s", resource)
	}
	request := &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: devices}}}
	response, err := client.API().Allocate(ctx, request)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(response)
	return string(text), err
}
