import type { CommandOf } from '#bus/messages/session.ts';
import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';

/** A model call of a turn: what is asked, and what its reply says. Pure: equal inputs give equal bytes in any process. */
export interface TurnStep<Input, Result> {
  /** Stored with the effect; raise its version when `render` changes. */
  readonly template: string;
  /** @param guidance an instruction for this reply; null and absent: none */
  render(input: Input, guidance?: string | null): { messages: ChatMessage[] };
  read(reply: CommandOf<'call.completed'>): Result;
}
