import { limits } from '../limits.ts';
import { noSuchSession } from '../plugins/error-reply.ts';

const SESSION_ID = /^[A-Za-z0-9_-]+$/;

/** Whether a text can be the id of a session. Any other goes neither into a subject nor into a query. */
export function isSessionId(text: string): boolean {
  return text.length <= limits.idCharacters && SESSION_ID.test(text);
}

/** A text that can't be the id of a session is that of none. @throws `session.not_found` */
export function checkedSessionId(text: string): string {
  if (!isSessionId(text)) throw noSuchSession();
  return text;
}
