import { limits } from '../limits.ts';
import { noSuchSession } from '../plugins/error-reply.ts';

const SESSION_ID = /^[A-Za-z0-9_-]+$/;

/** Whether a text can be a session's id. Any other must not reach a subject or a query. */
export function isSessionId(text: string): boolean {
  return text.length <= limits.idCharacters && SESSION_ID.test(text);
}

/** @throws `session.not_found` for a text that can't be a session's id */
export function checkedSessionId(text: string): string {
  if (!isSessionId(text)) throw noSuchSession();
  return text;
}
