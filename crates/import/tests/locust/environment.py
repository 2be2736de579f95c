import os
from os import environ

from locust import HttpUser, between, task

TENANT = os.getenv("TENANT", "acme")
API_KEY = os.environ.get("API_KEY", "key-1")
VERSION = 2
PREFIX = f"/api/v{VERSION}"
PATHS = ["status", "health"]
MIN_WAIT = float(environ.get("MIN_WAIT", "1"))


class TenantUser(HttpUser):
    host = os.environ.get("TARGET", "http://127.0.0.1:8080")
    wait_time = between(1, 2)

    @task
    def tenant(self):
        self.client.get(f"{PREFIX}/tenants/{TENANT}", headers={"X-Api-Key": API_KEY})

    @task
    def paths(self):
        for path in PATHS:
            self.client.get(PREFIX + "/" + path)
