"""The routes of AG-UI."""

from fastapi import APIRouter

from stint.http.requests import StrictRoute

router = APIRouter(tags=["AG-UI"], route_class=StrictRoute)
