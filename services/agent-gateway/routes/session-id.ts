import { limits } from '../limits.ts';
import { noSuchSession } from '../plugins/error-reply.ts';

const SESSION_ID = /^[A-Za-z0-9_-]+$/;

/** A text that can't be the id of a session is that of none: it goes neither into a subject nor into a query. @throws `session.not_found` */
export function checkedSessionId(text: string): string {
  if (text.length > limits.idCharacters || !SESSION_ID.test(text)) throw noSuchSession();
  return text;
}
