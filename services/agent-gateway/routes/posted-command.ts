import type { z } from 'zod';
import { COMMAND_VERSION, type CommandOf } from '#bus/messages/session.ts';
import type { postEventRequest } from '#shared/contracts/agent/session.ts';

type Posted = CommandOf<'message.post' | 'client-event.post'>;
type Shared = Pick<Posted, 'sessionId' | 'commandId' | 'sentAtMs' | 'answerTo' | 'traceparent' | 'traceId'> & { bundleHash: string };

/** The command of a body, and whether it is a customer's message: such a one is answered with 202 once it is durable. */
export function postedCommand(body: z.infer<typeof postEventRequest>, { bundleHash, ...shared }: Shared): { command: Posted; isCustomers: boolean } {
  const { metadata } = body;
  switch (body.kind) {
    case 'user_message':
    case 'message': {
      const [text, source] = body.kind === 'message' ? [body.message, body.source] : [body.text, body.source ?? 'customer'];
      const isCustomers = source === 'customer' || source === 'customer_ui';
      const triggersTurn = body.trigger_processing ?? isCustomers;
      const participant = body.participant && { id: body.participant.id ?? null, display_name: body.participant.display_name };
      // Hosts of the release before would drop the participant.
      const v = participant ? COMMAND_VERSION : 1;
      return {
        command: { v, type: 'message.post', ...shared, source, text, ...(participant && { participant }), metadata, triggersTurn, bundleHash },
        isCustomers,
      };
    }
    case 'custom':
    case 'status': {
      const content = body.kind === 'custom' ? { kind: body.kind, data: body.data } : { kind: body.kind, status: body.status, data: body.data };
      return { command: { v: COMMAND_VERSION, type: 'client-event.post', ...shared, source: body.source, content, metadata }, isCustomers: false };
    }
  }
}
