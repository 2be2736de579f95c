from locust import HttpUser, task

PAGES = [number * 2 for number in range(1, 4)]
SIZES = {"small": 1, "large": 10}


class FormatUser(HttpUser):
    host = "http://127.0.0.1:8080"

    @task
    def texts(self):
        self.client.get("/a/%d/%s" % (7, "x"))
        self.client.get("/b/{0}/{name}/{0}".format(1, name="n"))
        self.client.get("/c/" "joined/" f"{3:03d}/{2.5:.1f}")
        self.client.get("/d/" + str(True).lower() + "/" + ",".join(["x", "y"]))
        self.client.get(f"/e/{{brace}}/{len(PAGES)}/{PAGES[-1]}")
        self.client.get("/f", params={"pages": str(PAGES), "named": f"{['a', None, True]}"})

    @task
    def loops(self):
        for page in PAGES:
            self.client.get(f"/pages/{page}")
        for name, size in SIZES.items():
            if size > 5:
                self.client.get(f"/sizes/{name}")
            else:
                self.client.get(f"/sizes/{name}/{size}")
        for index, word in enumerate(["zero", "one"]):
            self.client.get(f"/words/{index}/{word}")
        for _ in range(3):
            self.client.get("/again")

    @task
    def conditions(self):
        items = self.client.get("/list").json()["items"]
        last = 0 if not SIZES else max(SIZES["small"], SIZES["large"])
        self.client.get("/last/" + str(last), params=dict(first=items[0]["id"]), name="/last")
