from locust import HttpUser, between, constant, task


class WebUser(HttpUser):
    host = "http://127.0.0.1:8080"
    weight = 3
    wait_time = constant(2)

    @task(2)
    def index(self):
        self.client.get("/")

    @task
    def about(self):
        self.client.get("/about/")


class MobileUser(HttpUser):
    host = "http://127.0.0.1:8080"
    weight = 1
    wait_time = between(3, 5)

    @task
    def api(self):
        self.client.get("/api/mobile", headers={"X-App": "mobile"})
