/** Heads of the instruction that the agent's engine adds to the call for a reply (actors/engine/composition). */
const HEADS = ['Policies that apply to this reply:', 'Rules for this reply:'];
const RULES = 'Rules for this reply:';
const LINE =
  /^- (?:When .*?, then |Always: |Before all else: |The current step of "(?:[^"\\]|\\.)*": )(.*?)(?: \((?:It applies because|What was wrong): ".*"\))?$/;

export function isGuidance(instruction: string): boolean {
  return HEADS.some((head) => instruction.startsWith(head));
}

/** Actions that are said. */
const MAX_ACTIONS = 3;

/** Null: the text has no end of a sentence. */
export function firstSentence(text: string): string | null {
  return /^.*?[.!?](?= |$)/.exec(text)?.[0] ?? null;
}

/** What the instruction says that the agent is to do, as its first sentences; empty: nothing. */
export function guidedText(instructions: readonly string[]): string {
  const guidance = instructions.find(isGuidance)?.split(RULES)[0] ?? '';
  // A policy that an earlier version missed stands there twice.
  const actions = [...new Set(guidance.split('\n').flatMap((line) => LINE.exec(line)?.[1] ?? []))];
  const sentences = actions.slice(0, MAX_ACTIONS).map((action) => firstSentence(action) ?? `${action}.`);
  return sentences.length === 0 ? '' : `My policies for this reply: ${sentences.join(' ')}`;
}
