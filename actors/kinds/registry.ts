import type { ActorKind, ActorKinds } from './actor-kind.ts';
import { deliveryKind } from './delivery/kind.ts';
import { eventWebhookKind } from './event-webhook/kind.ts';
import type { Plan } from './plan.ts';
import { runKind } from './run/kind.ts';
import { sessionKind } from './session/kind.ts';
import { turnKind } from './turn/kind.ts';

/** Every kind of actor: one row each. A command goes to the first that receives it. */
const rows: readonly ActorKind<Plan>[] = [deliveryKind, eventWebhookKind, sessionKind, turnKind, runKind];

export const actorKinds: ActorKinds<Plan> = new Map(rows.map((kind) => [kind.name, kind]));
