from locust import HttpUser, task


class Everything(HttpUser):
    host = "http://127.0.0.1:8080"

    @task
    def queries(self):
        self.client.get("/search", params={"q": "red shoes", "page": 2, "tag": ["a", "b&c"], "none": None})
        self.client.get("/search?fixed=1", params=[("x", "1"), ("x", "ä")])
        self.client.get(url="/named", name="a name")

    @task
    def bodies(self):
        self.client.post("/form", data={"name": "Ann Lee", "zip": "10115", "active": True, "many": [1, 2]})
        self.client.post("/form", {"positional": "data"})
        self.client.post("/text", data="plain & simple", headers={"Content-Type": "text/plain"})
        self.client.post("/json", json={"b": 1, "a": {"list": [1, 2.5, "x"], "ok": False, "none": None}})
        self.client.put("/json/1", json=["ä", "\"quoted\""])
        self.client.patch("/json/1", json={"only": "this"}, headers={"Content-Type": "application/merge+json"})

    @task
    def others(self):
        self.client.delete("/json/1")
        self.client.options("/json")
        self.client.request("PURGE", "/cache", headers={"X-Why": "stale"})
        self.client.request(method="GET", url="/request", params={"a": 1})

    @task
    def parameters(self):
        self.client.get("/private", auth=("ann", "pa:ss"), timeout=5)
        self.client.get("/cookies", cookies={"session": "abc", "theme": "dark"})
        self.client.get("http://127.0.0.1:8080/absolute")
