import json

from locust import HttpUser, constant_pacing, task

CREDENTIALS = {"email": "ann@example.org", "password": "s3cret"}


class ApiUser(HttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = constant_pacing(10)
    token = None

    def on_start(self):
        response = self.client.post(
            "/api/login",
            data=json.dumps(CREDENTIALS),
            headers={"Content-Type": "application/json"},
        )
        self.token = response.json()["token"]
        self.client.headers.update({"Authorization": f"Bearer {self.token}"})
        self.client.headers["X-Client"] = "load"

    def on_stop(self):
        self.client.post("/api/logout")

    @task(3)
    def profile(self):
        self.client.get("/api/profile")

    @task
    def rename(self):
        name = self.client.get("/api/profile").json()["user"]["name"]
        self.client.patch("/api/profile", json={"name": name, "tags": ["a", "b"], "active": True, "note": None})
