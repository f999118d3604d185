import type { AnswerAudio } from '../../contracts/router/chat-completion.ts';
import type { AnswerSound } from '../answer.ts';

/** The whole sound of an answer. */
export function audioOf({ id, data, transcript, expiresAt }: AnswerSound): AnswerAudio {
  return {
    id,
    ...(data.length > 0 && { data: joinedBase64(data) }),
    ...(transcript !== '' && { transcript }),
    ...(expiresAt !== null && { expires_at: expiresAt }),
  };
}

/** Each piece may end in padding, behind which decoders stop. */
function joinedBase64(pieces: readonly string[]): string {
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64'))).toString('base64');
}
