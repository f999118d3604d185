import type { CommandReply } from '#bus/messages/session.ts';
import type { CommitPlan } from '../../runtime/apply/commit-plan.ts';

/** `repeated`: a command of the plan was processed before, or an event's offset is taken; nothing is stored. */
export type CommitResult = { kind: 'committed'; owned: ReadonlySet<number> } | { kind: 'repeated'; error: unknown };

interface ProcessedCommand {
  sessionId: string;
  commandId: string;
  reply: CommandReply | null;
}

export interface CommitStore {
  /**
   * Stores a plan atomically. A partition whose stored owner, epoch or commit number differs from its claim drops out with all of its rows.
   *
   * @returns in `owned` the partitions that were stored
   * @throws a transient error (`isTransientError`) when the outcome is unknown: it may be stored now, or later; any other error: nothing is stored
   */
  commit(plan: CommitPlan): Promise<CommitResult>;
  /** Those of the commands that were processed. */
  processed(commands: readonly { sessionId: string; commandId: string }[]): Promise<ProcessedCommand[]>;
}
