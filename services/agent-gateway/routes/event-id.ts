import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

const EVENT_ID = /^[A-Za-z0-9_-]{1,128}$/;

/** Whether a text can be an event's id. Any other must not reach a query. */
export function isEventId(text: string): boolean {
  return EVENT_ID.test(text);
}

export function noSuchEvent(): SwitchyardError {
  return new SwitchyardError('request.not_found', 'there is no such event in the session');
}
