import type { CommandOf } from '#bus/messages/session.ts';
import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';

/** A model call of a turn: what is asked, and what its reply says. Pure: equal inputs give equal bytes in any process. */
export interface TurnStep<Input, Result> {
  /** Stored with the effect; raise its version when `render` changes. */
  readonly template: string;
  render(input: Input): { messages: ChatMessage[] };
  read(reply: CommandOf<'call.completed'>): Result;
}
