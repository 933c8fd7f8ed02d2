"""Starts servers that speak S3, on free ports of this machine."""

import contextlib
import getpass
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

BIN = pathlib.Path(sys.executable).parent
READY_SECONDS = 60


class Store:
    """Where a server is, and the keys that it takes."""

    def __init__(self, name, port, key, secret, checks_signatures):
        self.name = name
        self.endpoint = f"http://127.0.0.1:{port}"
        self.key = key
        self.secret = secret
        self.checks_signatures = checks_signatures

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return kept | {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": self.key,
                       "AWS_SECRET_ACCESS_KEY": self.secret, "AWS_REGION": "us-east-1",
                       "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}

    def client(self):
        import boto3
        from botocore.config import Config
        return boto3.client("s3", endpoint_url=self.endpoint, aws_access_key_id=self.key,
                            aws_secret_access_key=self.secret, region_name="us-east-1",
                            config=Config(s3={"addressing_style": "path"}))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(commands, log, ports):
    """Runs commands until the end of the block, and waits until all ports take connections."""
    processes = []
    with open(log, "wb") as out:
        try:
            for command in commands:
                processes.append(subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True))
            for port in ports:
                wait_for(port, log)
            yield
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
            for process in processes:
                process.wait()


def wait_for(port, log):
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"no server on port {port}:\n{pathlib.Path(log).read_text()[-2000:]}")


@contextlib.contextmanager
def moto(folder):
    """Answers any signature."""
    port = free_port()
    with running([[BIN / "moto_server", "-H", "127.0.0.1", "-p", str(port)]], folder / "moto.log", [port]):
        yield Store("moto", port, "id", "secret", checks_signatures=False)


SWIFT_CONF = """
[swift-hash]
swift_hash_path_suffix = x
swift_hash_path_prefix = y
[storage-policy:0]
name = p0
default = yes
"""

SERVER_CONF = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 2
user = {user}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
fallocate_reserve = 0
recon_cache_path = {folder}
"""

PROXY_CONF = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 2
user = {user}
swift_dir = {folder}
[pipeline:main]
pipeline = catch_errors proxy-logging cache listing_formats s3api tempauth copy slo dlo proxy-logging proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{closed_port}
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
"""


def make_ring(folder, kind, port):
    builder = f"{kind}.builder"
    for arguments in (["create", "4", "1", "1"], ["add", f"r1z1-127.0.0.1:{port}/d1", "1"], ["rebalance"]):
        subprocess.run([BIN / "swift-ring-builder", builder, *arguments], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def swift(folder):
    """A store with disks; its folder is on a file system with user attributes."""
    (folder / "devices" / "d1").mkdir(parents=True)
    (folder / "swift.conf").write_text(SWIFT_CONF)
    values = {"folder": folder, "user": getpass.getuser(), "closed_port": free_port()}
    ports = []
    commands = []
    for kind in ("account", "container", "object", "proxy"):
        port = free_port()
        ports.append(port)
        text = PROXY_CONF if kind == "proxy" else SERVER_CONF
        conf = folder / f"{kind}.conf"
        conf.write_text(text.format(kind=kind, port=port, **values))
        if kind != "proxy":
            make_ring(folder, kind, port)
        commands.append([BIN / f"swift-{kind}-server", conf])
    with running(commands, folder / "swift.log", ports):
        yield Store("swift", ports[-1], "test:tester", "testing", checks_signatures=True)
