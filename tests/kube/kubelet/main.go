// Kubelet is the part of a kubelet that talks to drivers of dynamic resource allocation: its own
// plugin manager and DRA manager, for tests of gpu-agent --dra.
//
//	kubelet DIR NODE
//
// DIR has plugins_registry, where drivers register, and the manager's own state. It reads an object
// of JSON on each line and answers each, in any order, with one that has the same id:
//
//	{"id":2,"do":"prepare","claim":{...}}      the ResourceClaim as a pod of its own would have it
//	{"id":3,"do":"unprepare","claim":{...}}
//	{"id":4,"do":"count","resource":"..."}     the healthy devices of a device plugin
//	{"id":5,"do":"allocate","resource":"...","devices":["..."]}
//
// An answer has "error", "devices" of what was prepared, the "count", or what was "given".
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

const (
	driverType = "DRAPlugin"
	deviceType = "DevicePlugin"
)

type request struct {
	ID       int                        `json:"id"`
	Do       string                     `json:"do"`
	Claim    *resourceapi.ResourceClaim `json:"claim"`
	Resource string                     `json:"resource"`
	Devices  []string                   `json:"devices"`
}

type answer struct {
	Count   int      `json:"count,omitempty"`
	Given   string   `json:"given,omitempty"`
	ID      int      `json:"id"`
	Error   string   `json:"error"`
	Devices []string `json:"devices,omitempty"`
}

type kubelet struct {
	ctx     context.Context
	client  *fake.Clientset
	manager *dra.Manager
	counted *counted
	lock    sync.Mutex
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: kubelet DIR NODE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

func run(dir, name string) error {
	ctx := context.Background()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "node"}}
	client := fake.NewClientset(node)
	state := filepath.Join(dir, "state")
	for _, path := range []string{state, filepath.Join(dir, "plugins_registry")} {
		if err := os.MkdirAll(path, 0o750); err != nil {
			return err
		}
	}
	manager, err := dra.NewManager(klog.Background(), client, state)
	if err != nil {
		return err
	}
	k := &kubelet{ctx: ctx, client: client, manager: manager,
		counted: &counted{clients: map[string]deviceClient{}, devices: map[string]int{}}}
	never := config.NewSourcesReady(func(sets.Set[string]) bool { return false })
	none := func() []*v1.Pod { return nil }
	if err := manager.Start(ctx, none, getNode(node), never); err != nil {
		return err
	}
	plugins := pluginmanager.NewPluginManager(filepath.Join(dir, "plugins_registry"), record.NewFakeRecorder(100))
	plugins.AddHandler(driverType, manager.GetWatcherHandler())
	server, err := newDeviceServer(filepath.Join(dir, "kubelet.sock"), k.counted)
	if err != nil {
		return err
	}
	plugins.AddHandler(deviceType, server)
	go watch(ctx, plugins, never)
	return k.serve()
}

// serve answers until its input ends.
func (k *kubelet) serve() error {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<20)
	for input.Scan() {
		var asked request
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			return err
		}
		go k.answer(asked)
	}
	return input.Err()
}

func (k *kubelet) answer(asked request) {
	given := answer{ID: asked.ID}
	var err error
	switch asked.Do {
	case "prepare":
		given.Devices, err = k.prepare(asked.Claim)
	case "unprepare":
		err = k.manager.UnprepareResources(k.ctx, podOf(asked.Claim))
	case "count":
		given.Count = k.counted.count(asked.Resource)
	case "allocate":
		given.Given, err = k.counted.allocate(k.ctx, asked.Resource, asked.Devices)
	default:
		err = fmt.Errorf("unknown: %s", asked.Do)
	}
	if err != nil {
		given.Error = err.Error()
	}
	text, _ := json.Marshal(given)
	k.lock.Lock()
	defer k.lock.Unlock()
	fmt.Println(string(text))
}

// prepare is one try: who asks tries again, as the workers of pods do.
func (k *kubelet) prepare(claim *resourceapi.ResourceClaim) ([]string, error) {
	claims := k.client.ResourceV1().ResourceClaims(claim.Namespace)
	_, err := claims.Create(k.ctx, claim, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = claims.Update(k.ctx, claim, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, err
	}
	pod := podOf(claim)
	if err := k.manager.PrepareResources(k.ctx, pod); err != nil {
		return nil, err
	}
	found, err := k.manager.GetResources(pod, &pod.Spec.Containers[0])
	if err != nil {
		return nil, err
	}
	var devices []string
	for _, device := range found.CDIDevices {
		devices = append(devices, device.Name)
	}
	return devices, nil
}

// podOf is the pod that the claim is reserved for.
func podOf(claim *resourceapi.ResourceClaim) *v1.Pod {
	name := claim.Name
	consumer := claim.Status.ReservedFor[0]
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: consumer.Name, Namespace: claim.Namespace, UID: types.UID(consumer.UID)},
		Spec: v1.PodSpec{
			ResourceClaims: []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}},
			Containers: []v1.Container{{
				Name:      "main",
				Resources: v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "gpu"}}},
			}},
		},
		Status: v1.PodStatus{StartTime: &metav1.Time{Time: time.Now()}},
	}
}
