import random
import string
import uuid

from locust import HttpUser, task

COLOURS = ["red", "green", "blue"]


class RandomUser(HttpUser):
    host = "http://127.0.0.1:8080"

    def wait_time(self):
        return random.uniform(0.1, 0.3)

    @task
    def draw(self):
        number = random.randint(1, 1000)
        colour = random.choice(COLOURS)
        self.client.get(f"/draw?random={number}")
        self.client.get("/draw", params={"random": colour}, name="/draw?random")
        self.client.post(f"/things/{uuid.uuid4()}", name="/things/[uuid]", json={
            "random": colour,
            "id": str(uuid.uuid4()),
        })

    @task
    def word(self):
        word = "".join(random.choices(string.ascii_lowercase, k=8))
        self.client.get("/word", headers={"X-Random": word})
        self.client.get("/word?random=" + word)

    @task
    def coin(self):
        if random.random() < 0.5:
            side = "heads"
        else:
            side = "tails"
        self.client.get(f"/coin?random={random.randrange(10)}")
