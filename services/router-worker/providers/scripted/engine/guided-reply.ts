/** Heads of the instruction that the agent's engine adds to the call for a reply (actors/engine/composition). */
const HEADS = ['Policies that apply to this reply:', 'Rules for this reply:'];
const RULES = 'Rules for this reply:';
const LINE = /^- (?:When .*?, then |Always: |Before all else: |The current step of "(?:[^"\\]|\\.)*": )(.*?)(?: \(It applies because: ".*"\))?$/;

export function isGuidance(instruction: string): boolean {
  return HEADS.some((head) => instruction.startsWith(head));
}

/** What the instruction says that the agent is to do, as a sentence; empty: nothing. */
export function guidedText(instructions: readonly string[]): string {
  const guidance = instructions.find(isGuidance)?.split(RULES)[0] ?? '';
  const actions = guidance.split('\n').flatMap((line) => LINE.exec(line)?.[1] ?? []);
  return actions.length === 0 ? '' : `My policies for this reply: ${actions.map((action) => (/[.!?]$/.test(action) ? action : `${action}.`)).join(' ')}`;
}
