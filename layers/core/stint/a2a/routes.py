"""The routes of A2A."""

from fastapi import APIRouter

from stint.http.requests import StrictRoute

router = APIRouter(tags=["A2A"], route_class=StrictRoute)
