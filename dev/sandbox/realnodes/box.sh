#!/bin/sh
# Become a node in a box: join its cgroups, then build its root in namespaces of its own and hand over to init.sh.
# Variables: TREE (read-only root), HOME_FOLDER (the node's, on a real disk), PROGRAMS (kubelet …), IMAGES, SHARED (with compute nodes), SLURM (its programs, or nothing), NAME, MEMORY_KIB, CABLE, BRIDGE, CGROUPS (folders)
set -e
if [ "$1" != inside ]; then
  for group in $CGROUPS; do echo 0 > "$group/cgroup.procs"; done
  # The mount namespace of its own comes first: nothing below is ever seen on the host.
  exec unshare --mount --propagation private --pid --uts --ipc --cgroup --fork --kill-child=KILL /bin/sh "$0" inside
fi
cd "$HOME_FOLDER"
mkdir -p upper work root disk/containerd disk/kubelet disk/cni disk/log
mount -t overlay overlay -o "lowerdir=$TREE,upperdir=$HOME_FOLDER/upper,workdir=$HOME_FOLDER/work" root
R=$HOME_FOLDER/root
mkdir -p $R/proc $R/sys $R/dev $R/run $R/tmp $R/root $R/old $R/var/log $R/var/lib/containerd $R/var/lib/kubelet $R/var/lib/cni $R/opt/node $R/opt/images $R/shared
[ -L $R/var/run ] || { rm -rf $R/var/run; ln -s /run $R/var/run; }
chmod 1777 $R/tmp
mount -t proc proc $R/proc
mount -t tmpfs -o mode=755 dev $R/dev
for device in null zero full random urandom tty kmsg fuse; do
  if [ -e /dev/$device ]; then : > $R/dev/$device; mount --bind /dev/$device $R/dev/$device; fi
done
mkdir $R/dev/pts $R/dev/shm $R/dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts $R/dev/pts
mount -t tmpfs -o mode=1777 shm $R/dev/shm
mount -t mqueue mqueue $R/dev/mqueue
ln -s pts/ptmx $R/dev/ptmx; ln -s /proc/self/fd $R/dev/fd
ln -s fd/0 $R/dev/stdin; ln -s fd/1 $R/dev/stdout; ln -s fd/2 $R/dev/stderr
mount -t tmpfs -o mode=755 run $R/run
# The kubelet takes what /proc/meminfo says for its machine's memory.
sed -E "s/^(MemTotal|MemFree|MemAvailable):.*/\1: $MEMORY_KIB kB/" /proc/meminfo > $R/run/meminfo
mount --bind $R/run/meminfo $R/proc/meminfo
# containerd's overlays need a disk that is not an overlay itself
mount --bind disk/containerd $R/var/lib/containerd
mount --bind disk/kubelet $R/var/lib/kubelet
mount --bind disk/cni $R/var/lib/cni
mount --bind disk/log $R/var/log
mount --bind "$PROGRAMS" $R/opt/node
mount --bind "$IMAGES" $R/opt/images
mount --bind "$SHARED" $R/shared
# Slurm's programs name their libraries by absolute path.
[ -z "$SLURM" ] || { mkdir -p "$R$SLURM"; mount --bind "$SLURM" "$R$SLURM"; }
cp -r etc/. $R/etc/
hostname "$NAME" 2>/dev/null || echo "$NAME" > /proc/sys/kernel/hostname
cd $R
pivot_root . old
umount -l /old
mount --make-rshared /
# The cable can be laid when this process has left the host's network, and only from there.
(
  host=$(readlink /proc/self/ns/net)
  while [ "$(readlink /proc/1/ns/net)" = "$host" ]; do sleep 0.02; done
  ip link add "$CABLE" type veth peer name eth0 netns 1 && ip link set "$CABLE" master "$BRIDGE" up
) &
exec unshare --net /bin/bash /etc/kubernetes/init.sh
