import { readTurnRows, type TurnRow } from '../engine/turn-row.ts';
import type { RenderDeps } from './render-deps.ts';

/** The first rows of a turn, as its effects name them. */
export async function turnRowsBelow(staged: number, turnId: string, { turns }: Pick<RenderDeps, 'turns'>): Promise<TurnRow[]> {
  const rows = (await turns.staged([turnId])).get(turnId) ?? [];
  return readTurnRows(rows.filter(({ seq }) => seq < staged).map(({ body }) => body));
}
