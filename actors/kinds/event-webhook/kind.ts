import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf, SessionCommand } from '#bus/messages/session.ts';
import { type EventDeliveryScope, eventDelivery } from '../../effects/event-delivery.ts';
import { effects } from '../../effects/registry.ts';
import type { ActorKind } from '../actor-kind.ts';
import { type Handlers, openEffect, type Plan } from '../plan.ts';
import { sessionActor } from '../session/actor.ts';
import { eventWebhookActor } from './actor.ts';
import { letterOf, replayEvent, settleReplay } from './dead-event.ts';
import { deploymentOf } from './end-session.ts';
import { EVENT_WEBHOOK_MACHINE_VERSION, eventWebhookMachine } from './machine.ts';
import type { EventWebhookActions, EventWebhookEvent, EventWebhookInput, Scene } from './types.ts';

/** Of hosts without the setting. */
const MAX_ATTEMPTS = 5;

type WebhookCommand = CommandOf<'event-webhook.set' | 'event-webhook.replay' | 'event-webhook.due' | 'event-webhook.reported' | 'effect.overdue'>;

const handlers: Handlers<EventWebhookActions> = {
  effect: (plan, request) => {
    const { traceparent } = plan.command;
    const bundleHash = plan.stateOf(eventWebhookActor)?.context.bundleHash ?? '';
    openEffect(plan, eventWebhookActor.name, request, { id: request.id, actorId: plan.sessionId, bundleHash, traceparent });
  },
  close: (plan, { id, state }) => plan.closeEffect(id, state),
  timer: (plan, { key, atMs, command }) => {
    plan.arm(key, atMs, command.type === 'effect.overdue' ? { ...command, ...actorFields(plan.sessionId) } : command);
  },
  disarm: (plan, { key }) => plan.disarm(key),
  giveUp: (plan, end) => {
    plan.deadLetters.push(letterOf(plan, end));
  },
  endSession: (plan) => plan.send(sessionActor, { type: 'deliveries.settled' }),
};

/** Posts a session's events. A session without event webhook has no state of it. */
export const eventWebhookKind: ActorKind<Plan> = {
  name: eventWebhookActor.name,
  machine: eventWebhookMachine,
  snapshot: { version: EVENT_WEBHOOK_MACHINE_VERSION, place: 1_000_000, migrations: new Map() },
  initial: null,
  handlers,
  receives: isWebhookCommand,
  receive(plan) {
    const { command } = plan;
    if (!isWebhookCommand(command)) return;
    if (command.type === 'event-webhook.set') return set(plan, command);
    if (command.type === 'event-webhook.replay') return replayEvent(plan, command);
    if (command.type !== 'event-webhook.due') settleReplay(plan, command);
    const event = eventOf(plan, command);
    if (event !== null) plan.send(eventWebhookActor, event);
  },
  afterCommand,
};

function isWebhookCommand(command: SessionCommand): command is WebhookCommand {
  return command.type.startsWith('event-webhook.') || (command.type === 'effect.overdue' && command.kind === eventDelivery.name);
}

/** Null when it is none of an event webhook's. */
function eventOf(plan: Plan, command: Exclude<WebhookCommand, CommandOf<'event-webhook.set' | 'event-webhook.replay'>>): EventWebhookEvent | null {
  const scene = sceneOf(plan);
  if (command.type === 'event-webhook.due') return { type: 'retry.due', scene, roundId: command.roundId };
  const maxAttempts = plan.inputs.eventWebhooks?.maxAttempts ?? MAX_ATTEMPTS;
  return effects.eventOf<EventDeliveryScope, EventWebhookEvent>(eventWebhookActor.name, command, { scene, maxAttempts, chance: plan.inputs.chance });
}

function set(plan: Plan, { url, fromOffset, bundleHash }: CommandOf<'event-webhook.set'>): void {
  const scene = sceneOf(plan);
  if (plan.record === null || plan.stateOf(sessionActor)?.value === 'deleted') {
    plan.reply = { ok: false, code: 'session.not_found', message: 'there is no such session' };
    return;
  }
  if (fromOffset !== null && fromOffset > scene.head) {
    plan.reply = { ok: false, code: 'request.invalid', message: `from_offset is past the end of the log: the next offset is ${scene.head}` };
    return;
  }
  if (plan.stateOf(eventWebhookActor) === null) start(plan, { url, isOn: false, cursor: scene.head, bundleHash });
  plan.send(eventWebhookActor, { type: 'webhook.set', scene, url, fromOffset, bundleHash });
  plan.reply = { ok: true, value: { event_webhook: { url, from_offset: plan.stateOf(eventWebhookActor)?.context.cursor ?? scene.head } } };
}

/** Posts what the command appended. A session that it created gets its webhook first. */
function afterCommand(plan: Plan): void {
  const { events, isErased, record } = plan;
  if (record === null || isErased) return;
  if (plan.stateOf(eventWebhookActor) === null) {
    if (!plan.isNew) return;
    const input = inputOf(plan);
    if (input === null) return;
    start(plan, input);
  }
  const [first] = events;
  if (first === undefined) return;
  const kinds = events.map(({ event }) => event.kind);
  plan.send(eventWebhookActor, { type: 'events.appended', scene: sceneOf(plan), first: first.event.offset, kinds, bundleHash: bundleOf(plan) });
}

/** Of a new session; null: it has no event webhook. */
function inputOf(plan: Plan): EventWebhookInput | null {
  const url = (plan.command.type === 'session.create' ? plan.command.eventWebhookUrl : null) ?? null;
  if (url === null && deploymentOf(plan) === null) return null;
  return { url, isOn: true, cursor: 0, bundleHash: bundleOf(plan) ?? '' };
}

function start(plan: Plan, input: EventWebhookInput): void {
  plan.start(eventWebhookActor, input);
}

/** The configuration that the command names, itself or by its run; null: none. */
function bundleOf({ command, inputs }: Plan): string | null {
  if (command.type === 'run.start') return inputs.runOf(command.runId)?.bundleHash ?? null;
  return 'bundleHash' in command ? command.bundleHash : null;
}

function sceneOf(plan: Plan): Scene {
  return { atMs: plan.atMs, head: plan.lastOffset + 1, deployment: deploymentOf(plan), nextRoundId: `evw_${plan.inputs.newId(plan.atMs)}` };
}
