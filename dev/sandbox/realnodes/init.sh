#!/bin/bash
# Process 1 of a node: its network, then containerd, kubelet, kube-proxy and whatever else, each started again when it ends.
export PATH=/opt/node:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
. /etc/kubernetes/node.env

keep() {  # keep NAME COMMAND…
  local name=$1; shift
  while :; do
    "$@" >> "/var/log/$name.log" 2>&1 &
    echo $! > "/run/$name.pid"
    wait $!; echo "$name ended with $?" >&2
    while [ -e "/run/$name.stopped" ]; do sleep 0.1; done
    sleep 0.5
  done
}

power_off() {  # as a machine does: everything is asked to end, and has five seconds
  kill -KILL $keepers 2>/dev/null
  kill -TERM -1
  for _ in {1..50}; do kill -0 -1 2>/dev/null || break; sleep 0.1; done
  exit 0
}

mount -t sysfs sysfs /sys
if [ "$CGROUP_VERSION" = 1 ]; then
  mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
  for options in $HIERARCHIES; do
    folder=/sys/fs/cgroup/${options#name=} mounted=$options
    [[ $options == name=* ]] && mounted=none,$options
    mkdir "$folder"
    mount -t cgroup -o "$mounted" cgroup "$folder"
    if [[ $options == *,* ]]; then for part in ${options//,/ }; do ln -s "$options" "/sys/fs/cgroup/$part"; done; fi
  done
else
  mount -t cgroup2 cgroup /sys/fs/cgroup
  # A group with processes of its own gives its children no controllers: ours move to a leaf.
  mkdir -p /sys/fs/cgroup/init
  while read -r pid; do echo "$pid" > /sys/fs/cgroup/init/cgroup.procs; done < /sys/fs/cgroup/cgroup.procs
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control; done
fi

until [ -e /sys/class/net/eth0 ]; do sleep 0.02; done
ip link set lo up; ip link set eth0 up
ip address add "$ADDRESS/24" dev eth0; ip route add default via "$GATEWAY"
echo 1 > /proc/sys/net/ipv4/ip_forward
for route in $PEERS; do ip route add "${route%=*}" via "${route#*=}"; done

keepers=
keep containerd containerd & keepers+=" $!"
until ctr version > /dev/null 2>&1; do sleep 0.05; done
mkdir -p /var/lib/containerd/imported
for image in /opt/images/*.tar; do
  stamp=/var/lib/containerd/imported/${image##*/}
  [ "$stamp" -nt "$image" ] || { ctr -n k8s.io images import --local "$image" > /var/log/import.log 2>&1 && touch "$stamp" || cat /var/log/import.log >&2; }
done
keep kubelet kubelet --config=/etc/kubernetes/kubelet.json --kubeconfig=/etc/kubernetes/kubelet.kubeconfig --hostname-override="$NAME" --node-ip="$ADDRESS" --v=2 & keepers+=" $!"
keep kube-proxy kube-proxy --config=/etc/kubernetes/proxy.json --hostname-override="$NAME" & keepers+=" $!"
[ "$GPUS" -gt 0 ] && { keep fake-gpus fake-gpus --count="$GPUS" & keepers+=" $!"; }
[ "$DRA" -gt 0 ] && { mkdir -p /var/lib/kubelet/plugins/test-driver.cdi.k8s.io; keep dra-test-driver dra-test-driver --kubeconfig=/etc/kubernetes/kubelet.kubeconfig kubelet-plugin --node-name="$NAME" --num-devices="$DRA" --enable-device-metadata & keepers+=" $!"; }
[ -e /etc/slurm/slurmd.sh ] && { mkdir -p /var/spool/slurmd; keep slurmd sh /etc/slurm/slurmd.sh & keepers+=" $!"; }
trap power_off TERM
while :; do wait; done
