from locust import HttpUser, constant, task


class CheckingUser(HttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = constant(1)

    @task
    def index(self):
        with self.client.get("/", catch_response=True) as response:
            if response.status_code != 200:
                response.failure(f"got {response.status_code}")
            elif "token" not in response.text:
                response.failure("there is no token in it")
            else:
                response.success()

    @task
    def maybe_missing(self):
        with self.client.get("/maybe", catch_response=True) as response:
            if response.status_code == 404:
                response.success()

    @task
    def exactly(self):
        with self.client.get("/exactly", name="exactly", catch_response=True) as answer:
            if answer.status_code in (200, 201) and answer.json()["user"]["name"] == "Ann":
                answer.success()
            else:
                answer.failure("it is somebody else")

    @task
    def asserted(self):
        response = self.client.get("/asserted")
        assert response.status_code == 200
        assert response.headers["x-trace"] == "trace-1"

    @task
    def listed(self):
        with self.client.get("/listed", catch_response=True) as response:
            if not response.ok or "items" not in response.json():
                response.failure("no items")
                return
            first = response.json()["items"][0]["id"]
        self.client.get(f"/items/{first}", name="/items/[id]")
