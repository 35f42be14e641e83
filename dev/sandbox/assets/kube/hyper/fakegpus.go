package main

import (
	"context"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

// newFakeGPUsCommand returns a device plugin whose devices are nothing but names. A container finds those it was given in
// NVIDIA_VISIBLE_DEVICES, as with NVIDIA's own plugin.
func newFakeGPUsCommand() *cobra.Command {
	var count int
	var resource string
	command := &cobra.Command{
		Use:  "fake-gpus",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return serveFakeGPUs(count, resource) },
	}
	command.Flags().IntVar(&count, "count", 4, "how many devices there are: gpu-0, gpu-1 …")
	command.Flags().StringVar(&resource, "resource", "nvidia.com/gpu", "the extended resource they are counted as")
	return command
}

func serveFakeGPUs(count int, resource string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var devices []*api.Device
	for index := range count {
		devices = append(devices, &api.Device{ID: fmt.Sprintf("gpu-%d", index), Health: api.Healthy})
	}
	socket := api.DevicePluginPath + "fake-gpus.sock"
	stub := plugin.NewDevicePluginStub(klog.Background(), devices, socket, resource, false, false)
	stub.SetAllocFunc(allocate)
	if err := stub.Start(ctx); err != nil {
		return err
	}
	if err := stub.Register(ctx, api.KubeletSocket, resource, ""); err != nil {
		return err
	}
	go stub.Watch(ctx, api.KubeletSocket, resource, "") // registers again with a kubelet that was restarted
	<-ctx.Done()
	return stub.Stop(klog.Background())
}

func allocate(request *api.AllocateRequest, _ map[string]*api.Device) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		ids := slices.Sorted(slices.Values(container.DevicesIds))
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(ids, ",")},
		})
	}
	return response, nil
}
