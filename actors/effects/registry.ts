import { delivery } from './delivery.ts';
import { EffectTable } from './effect-table.ts';
import { embed } from './embed.ts';
import { embedMessages } from './embed-messages.ts';
import { eventDelivery } from './event-delivery.ts';
import { moderation } from './moderation.ts';
import { rewriteQueryCall } from './rewrite-query.ts';
import { runCall } from './run-call.ts';
import { search } from './search.ts';
import { toolCall } from './tool-call.ts';
import { toolList } from './tool-list.ts';
import { turnApplied } from './turn-applied.ts';
import { turnCall } from './turn-call.ts';
import { turnPreamble } from './turn-preamble.ts';
import { turnStep } from './turn-step.ts';
import { turnToolCall } from './turn-tool-call.ts';

/** Every kind of effect: one row each. */
export const effects = new EffectTable([
  turnCall,
  turnStep,
  turnToolCall,
  turnApplied,
  turnPreamble,
  rewriteQueryCall,
  embed,
  embedMessages,
  search,
  moderation,
  runCall,
  toolList,
  toolCall,
  delivery,
  eventDelivery,
]);
