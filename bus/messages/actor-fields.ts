import { z } from 'zod';

/**
 * The fields by which a message names the turn, run or delivery that it is about (ADR 37). Version 1 named it `turnId`, version 2 names it `actorId`. This
 * release writes both under version 1, since processes of the release before read that alone.
 */
export const actorShape = {
  actorId: z.string(),
  /** For the release before; this one reads `actorId`. */
  turnId: z.string(),
};

/** The fields as they are written. */
export function actorFields(actorId: string): { actorId: string; turnId: string } {
  return { actorId, turnId: actorId };
}

/** A received message of any version, with both fields if it has one of them. */
export function withActorFields(message: unknown): unknown {
  if (typeof message !== 'object' || message === null) return message;
  const { actorId, turnId } = message as { actorId?: unknown; turnId?: unknown };
  if (actorId === undefined && turnId !== undefined) return { ...message, actorId: turnId };
  if (turnId === undefined && actorId !== undefined) return { ...message, turnId: actorId };
  return message;
}
