#!/bin/sh
# Run by static.ts inside a root of Debian's Go packages (chroot): static containerd, shim, ctr, runc and CNI plugins for one architecture into /out.
# Environment: GOARCH, CONTAINERD_VERSION, RUNC_VERSION, CNI_VERSION (Debian's version strings), CC and PKG_CONFIG_LIBDIR when crossing.
set -eu
strip="-s -w"
upstream() { echo "${1%%[+~-]*}"; }

cd /usr/share/gocode/src/github.com/opencontainers/runc
CGO_ENABLED=1 go build -trimpath -buildvcs=false -tags "seccomp netgo osusergo urfave_cli_no_docs" \
  -ldflags "$strip -X main.version=$(upstream "$RUNC_VERSION") -X main.gitCommit=debian-$RUNC_VERSION -linkmode external -extldflags -static" -o /out/runc .

export CGO_ENABLED=0
version=github.com/containerd/containerd/v2/version
for program in containerd containerd-shim-runc-v2 ctr; do
  go build -trimpath -buildvcs=false -tags "osusergo netgo static_build no_btrfs no_devmapper no_zfs urfave_cli_no_docs" \
    -ldflags "$strip -X $version.Version=$(upstream "$CONTAINERD_VERSION") -X $version.Revision=debian-$CONTAINERD_VERSION" -o "/out/$program" "github.com/containerd/containerd/v2/cmd/$program"
done
for plugin in main/bridge ipam/host-local meta/portmap; do
  go build -trimpath -buildvcs=false -ldflags "$strip -X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=$(upstream "$CNI_VERSION")" \
    -o "/out/${plugin#*/}" "github.com/containernetworking/plugins/plugins/$plugin"
done
