"""Steps that build on each other: an order is made, looked at, paid and shown again."""

from locust import HttpUser, SequentialTaskSet, between, task


class Checkout(SequentialTaskSet):
    def on_start(self):
        self.order_id = None

    @task
    def front(self):
        self.client.get("/")

    @task
    def order(self):
        response = self.client.post("/orders", json={"product": 7, "amount": 2})
        self.order_id = response.json()["id"]

    @task
    def look(self):
        self.client.get(f"/orders/{self.order_id}", name="/orders/[id]")

    @task(2)
    def pay(self):
        self.client.post("/orders/%s/payments" % self.order_id, json={"order": str(self.order_id)})

    @task
    def done(self):
        self.client.get("/orders/{}/receipt".format(self.order_id), name="/orders/[id]/receipt")
        self.interrupt()


class Buyer(HttpUser):
    host = "http://127.0.0.1:8080"
    wait_time = between(0.5, 1.5)
    tasks = [Checkout]
