#!/usr/bin/env bash
# A real Slurm cluster of a few nodes on this one machine, for tests.
#
#   cluster.sh up   DIR [--nodes N] [--cpus N] [--gpus N] [--hosts]
#   cluster.sh down DIR
#
# `up` leaves its files in DIR and prints the path of slurm.conf; with it in
# SLURM_CONF, srun and sbatch speak to this cluster alone. All nodes share
# the machine's name and network, unless --hosts (as root) gives each a
# network, a host name and a /dev/shm of its own, as separate hosts have.
# GPUs are stand-ins: devices that Slurm counts and hands out.
set -euo pipefail

usage() { sed -n '4,5s/^# *//p' "$0" >&2; exit 2; }
say() { printf 'cluster: %s\n' "$*" >&2; }
[ $# -ge 2 ] || usage
verb=$1 dir=$2 nodes=2 cpus=8 gpus=0 hosts=no
shift 2
while [ $# -gt 0 ]; do
  case $1 in
    --nodes) nodes=$2; shift ;;
    --cpus) cpus=$2; shift ;;
    --gpus) gpus=$2; shift ;;
    --hosts) hosts=yes ;;
    *) usage ;;
  esac
  shift
done
export SLURM_CONF=$dir/slurm.conf PATH=$PATH:/usr/sbin:/sbin
# Names of network interfaces are short, so they carry a hash of DIR.
tag=$(printf %s "$dir" | cksum | cut -c1-4)

# await WHAT TENTHS COMMAND...: until the command succeeds.
await() {
  local what=$1 left=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    left=$((left - 1))
    if [ "$left" -le 0 ]; then
      say "$what did not come up; see $dir/log"
      tail -n 5 "$dir"/log/* >&2 || true
      exit 1
    fi
    sleep 0.1
  done
}

# The first of a run of ports that nobody listens on.
free_ports() {
  local count=$1 base=$((20000 + ($$ * 17) % 10000)) port
  while :; do
    for ((port = base; port < base + count; port++)); do
      if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        base=$((port + 1))
        continue 2
      fi
    done
    echo "$base"
    return
  done
}

# A munge daemon of this cluster's own, with its own key.
start_munge() {
  (umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
  munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
    --pid-file="$dir/run/munged.pid" --log-file="$dir/log/munged.log" \
    --seed-file="$dir/munge/seed" 2>"$dir/log/munged.err"
  await munged 50 munge -n --socket="$dir/munge/socket"
}

# Without cgroups slurmd cannot start, unless it is told not to look for them;
# how to tell it changed with Slurm 23.11.
write_cgroup_conf() {
  local version
  version=$(slurmd -V | sed 's/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1\2/')
  if [ "$version" -ge 2311 ]; then
    echo CgroupPlugin=disabled
  else
    echo CgroupPlugin=cgroup/v1
  fi >"$dir/cgroup.conf"
}

write_slurm_conf() {
  local host port controller=127.0.0.1 i gres=''
  host=$(hostname -s)
  port=$(free_ports $((nodes + 1)))
  [ $hosts = no ] || controller=10.98.0.1
  [ "$gpus" = 0 ] || gres="Gres=gpu:$gpus"
  cat <<CONF
ClusterName=libddp
SlurmctldHost=$host($controller)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
MpiDefault=none
# No cgroups, no accounting: processes are found by their parents.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# More CPUs and memory than there are.
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=5
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
# PMIx keeps its files here; nodes that share a folder would meet in it.
TmpFS=$dir/tmp.%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.%n.log
CONF
  [ "$gpus" = 0 ] || echo GresTypes=gpu
  for ((i = 1; i <= nodes; i++)); do
    if [ $hosts = yes ]; then
      echo "NodeName=node$i NodeAddr=10.98.0.$((10 + i)) Port=$((port + i))" \
        "CPUs=$cpus RealMemory=1000 $gres State=UNKNOWN"
    else
      echo "NodeName=node$i NodeHostname=$host NodeAddr=127.0.0.1" \
        "Port=$((port + i)) CPUs=$cpus RealMemory=1000 $gres State=UNKNOWN"
    fi
  done
  echo "PartitionName=main Nodes=node[1-$nodes] Default=YES State=UP"
}

# Slurm takes any device whose name ends in its index for a GPU.
write_gres() {
  local i
  mkdir -p "$dir/gpu"
  for ((i = 0; i < gpus; i++)); do
    ln -sf /dev/null "$dir/gpu/nvidia$i"
  done
  echo "NodeName=node[1-$nodes] Name=gpu File=$dir/gpu/nvidia[0-$((gpus - 1))]" \
    >"$dir/gres.conf"
}

# Hosts know each other by name, as they do on a cluster with DNS.
write_hosts() {
  local i
  echo "127.0.0.1 localhost"
  for ((i = 1; i <= nodes; i++)); do echo "10.98.0.$((10 + i)) node$i"; done
}

start_bridge() {
  ip link add "ddpbr$tag" type bridge
  ip addr add 10.98.0.1/24 dev "ddpbr$tag"
  ip link set "ddpbr$tag" up
}

# start_node I: slurmd of one node, in a host of its own if asked for.
start_node() {
  local name=node$1 space=ddp$tag-node$1
  mkdir -p "$dir/tmp.$name" "$dir/spool.$name"
  if [ $hosts = no ]; then
    slurmd -N "$name"
    return
  fi
  ip netns add "$space"
  ip link add "ddp$tag-$1" type veth peer name eth0 netns "$space"
  ip link set "ddp$tag-$1" master "ddpbr$tag" up
  ip -n "$space" addr add "10.98.0.$((10 + $1))/24" dev eth0
  ip -n "$space" link set lo up
  ip -n "$space" link set eth0 up
  nsenter --net="/run/netns/$space" unshare --uts --mount bash -c "
    hostname $name
    mount --bind '$dir/hosts' /etc/hosts
    mount -t tmpfs tmpfs /dev/shm
    exec slurmd -N $name"
}

all_idle() {
  [ "$(sinfo -h -N -t idle -o %N | wc -l)" = "$nodes" ]
}

up() {
  local i
  down
  mkdir -p "$dir"/{log,run,state,munge}
  chmod 755 "$dir" "$dir/munge"
  start_munge
  write_slurm_conf >"$SLURM_CONF"
  write_cgroup_conf
  [ "$gpus" = 0 ] || write_gres
  if [ $hosts = yes ]; then
    write_hosts >"$dir/hosts"
    start_bridge
  fi
  slurmctld
  for ((i = 1; i <= nodes; i++)); do start_node "$i"; done
  await "the cluster" 200 all_idle
  echo "$SLURM_CONF"
}

# Whether a process runs; one that has ended and waits for its parent does not.
runs() {
  local state
  state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
  [ -n "$state" ] && [ "${state:0:1}" != Z ]
}

# Ends what the pid files name, and waits until it has gone.
stop_daemons() {
  local file pid left=50
  for file in "$dir"/run/*.pid; do
    [ -e "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null || continue
    while runs "$pid" && [ $left -gt 0 ]; do
      sleep 0.1
      left=$((left - 1))
    done
    if runs "$pid"; then kill -9 "$pid" 2>/dev/null || true; fi
  done
}

remove_hosts() {
  local space link
  for link in /sys/class/net/"ddp$tag"-*; do
    [ ! -e "$link" ] || ip link del "${link##*/}"
  done
  for space in $(ip netns list 2>/dev/null | cut -d' ' -f1); do
    case $space in
      "ddp$tag-node"*) ip netns del "$space" ;;
    esac
  done
  if ip link show "ddpbr$tag" >/dev/null 2>&1; then
    ip link del "ddpbr$tag"
  fi
}

# A job that outlives its daemons is never ended by anybody.
cancel_jobs() {
  local left=100
  timeout 5 scancel --user="$(id -un)" --signal=KILL 2>/dev/null || true
  timeout 5 scancel --user="$(id -un)" 2>/dev/null || true
  while [ $left -gt 0 ] && [ -n "$(timeout 5 squeue -h 2>/dev/null)" ]; do
    sleep 0.1
    left=$((left - 1))
  done
}

down() {
  [ -d "$dir" ] || return 0
  if [ -e "$dir/run/slurmctld.pid" ]; then
    cancel_jobs
  fi
  stop_daemons
  remove_hosts
  # Only a folder that this script made.
  if [ -d "$dir/munge" ] && [ -d "$dir/state" ]; then rm -rf "$dir"; fi
}

case $verb in
  up) up ;;
  down) down ;;
  *) usage ;;
esac
