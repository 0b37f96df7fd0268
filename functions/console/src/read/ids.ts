export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The id of no turn, by which a session is read without its turns. */
export const NO_TURN = "00000000-0000-7000-8000-000000000000";
