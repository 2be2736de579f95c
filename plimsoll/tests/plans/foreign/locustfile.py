from locust import HttpUser
