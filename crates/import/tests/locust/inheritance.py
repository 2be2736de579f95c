from locust import HttpUser, between, task


class Signing:
    """Something that several users have in common."""

    def sign(self, text, suffix="!"):
        return text.upper() + suffix


class Base(HttpUser):
    abstract = True
    host = "http://127.0.0.1:8080"
    wait_time = between(1, 2)
    kind = "base"

    def on_start(self):
        self.client.headers["X-Kind"] = self.kind

    @task
    def shared(self):
        self.client.get(f"/shared/{self.kind}")


class Reader(Base):
    kind = "reader"

    @task
    def read(self):
        self.client.get("/read")


class Writer(Signing, Base):
    kind = "writer"

    def on_start(self):
        super().on_start()
        self.client.headers["X-Signed"] = self.sign("w", suffix="?")

    @task(2)
    def write(self):
        self.post(self.sign("text"))

    def post(self, text):
        self.client.post("/write", json={"text": text, "by": self.kind})
