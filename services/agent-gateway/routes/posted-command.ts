import type { z } from 'zod';
import { COMMAND_VERSION, type CommandOf } from '#bus/messages/session.ts';
import type { postEventQuery, postEventRequest } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

type Posted = CommandOf<'message.post' | 'client-event.post'>;
type Shared = Pick<Posted, 'sessionId' | 'commandId' | 'sentAtMs' | 'answerTo' | 'traceparent' | 'carried' | 'traceId'> & { bundleHash: string };

interface PostedWith {
  body: z.infer<typeof postEventRequest>;
  query: z.infer<typeof postEventQuery>;
}

/**
 * The command of a request, and whether the message is accepted once it is durable: a customer's, unless moderation is to read it. The owner refuses such a
 * one for the moment while it has too many, and a client that has 202 would not send it again.
 * @throws `request.invalid` for moderation of anything else
 */
export function postedCommand({ body, query }: PostedWith, { bundleHash, ...shared }: Shared): { command: Posted; isAccepted: boolean } {
  const moderation = query.moderation === 'none' ? undefined : query.moderation;
  const { metadata } = body;
  switch (body.kind) {
    case 'user_message':
    case 'message': {
      const [text, source] = body.kind === 'message' ? [body.message, body.source] : [body.text, body.source ?? 'customer'];
      const isCustomers = source === 'customer' || source === 'customer_ui';
      const triggersTurn = body.trigger_processing ?? isCustomers;
      const participant = body.participant && { id: body.participant.id ?? null, display_name: body.participant.display_name };
      if (moderation !== undefined && !isCustomers) throw notModerated();
      // Hosts of the release before would drop the participant, and check nothing.
      const v = participant || moderation !== undefined ? COMMAND_VERSION : 1;
      return {
        command: {
          ...{ v, type: 'message.post', ...shared, source, text, ...(participant && { participant }) },
          ...{ ...(moderation && { moderation }), metadata, triggersTurn, bundleHash },
        },
        isAccepted: isCustomers && moderation === undefined,
      };
    }
    case 'custom':
    case 'status': {
      if (moderation !== undefined) throw notModerated();
      const content = body.kind === 'custom' ? { kind: body.kind, data: body.data } : { kind: body.kind, status: body.status, data: body.data };
      return { command: { v: COMMAND_VERSION, type: 'client-event.post', ...shared, source: body.source, content, metadata }, isAccepted: false };
    }
  }
}

function notModerated(): SwitchyardError {
  return new SwitchyardError('request.invalid', 'moderation is for messages of a customer: those of other sources, and other events, are not checked', {
    details: { path: '/moderation' },
  });
}
