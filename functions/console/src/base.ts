/** Addresses. This file is served from `…/console/assets/`, so a stage or a base path need not be known. */

/** The console, with a slash at the end, such as https://api.example/prod/console/. */
export const CONSOLE = new URL("../", import.meta.url);

/** The API, with a slash at the end, such as https://api.example/prod/. */
export const API = new URL("../", CONSOLE);
