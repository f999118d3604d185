import type { ListedTool } from '#bus/messages/tool.ts';

/** Tools that one call of a model judges together; further ones are judged by another call, side by side. */
const MAX_GROUP = 32;

/** Tool lists by server, as they are stored. */
export type ToolListsByServer = Readonly<Record<string, { hash: string; tools: readonly ListedTool[] }>>;

/** Tool lists by hash; null for one that is not stored. */
export type ToolsOf = (hash: string) => readonly ListedTool[] | null;

/** Why a tool may be called. */
export interface ToolReason {
  by: 'policy' | 'step';
  /** Of the policy, or `routine:step`. */
  id: string;
  /** What the model reads. */
  condition: string | null;
  action: string | null;
}

/** Tools that one call judges. */
export interface InferItem {
  tools: readonly { toolId: string; reasons: readonly ToolReason[] }[];
  /** Of the servers of these tools. */
  lists: ToolListsByServer;
}

export interface TurnToolsInput {
  /** Matched in this turn, after relationships were resolved. */
  policies: readonly { id: string; condition: string | null; action: string | null; tools: readonly string[] }[];
  /** Current tool steps of active routines. */
  steps: readonly { routineId: string; stepId: string; tools: readonly string[]; instruction: string | null }[];
  lists: ToolListsByServer;
  /** Reasons for which tools were inferred in earlier iterations of the turn: by kind and id. */
  inferred: ReadonlySet<string>;
}

/**
 * The tools that may be called in a turn, in the groups that are judged together. All tools of MCP servers overlap, since what they do is only known in
 * words: a group holds as many as one call takes, those of one server side by side.
 *
 * @returns `unlisted`: tools that no stored list holds
 */
export function planInference({ policies, steps, lists, inferred }: TurnToolsInput): { groups: InferItem[]; unlisted: string[] } {
  const reasons = new Map<string, ToolReason[]>();
  const add = (tools: readonly string[], reason: ToolReason) => {
    if (inferred.has(reasonKeyOf(reason))) return;
    for (const toolId of tools) reasons.set(toolId, [...(reasons.get(toolId) ?? []), reason]);
  };
  for (const { id, condition, action, tools } of policies) add(tools, { by: 'policy', id, condition, action });
  for (const { routineId, stepId, tools, instruction } of steps) add(tools, { by: 'step', id: `${routineId}:${stepId}`, condition: null, action: instruction });
  // By code units: equal in any process.
  const wanted = [...reasons].sort(([left], [right]) => (left < right ? -1 : 1)).map(([toolId, why]) => ({ toolId, reasons: why }));
  const known = wanted.filter(({ toolId }) => isListed(toolId, lists));
  const groups: InferItem[] = [];
  for (let at = 0; at < known.length; at += MAX_GROUP) {
    const tools = known.slice(at, at + MAX_GROUP);
    const servers = new Set(tools.map(({ toolId }) => serverOf(toolId)));
    groups.push({ tools, lists: Object.fromEntries(Object.entries(lists).filter(([server]) => servers.has(server))) });
  }
  return { groups, unlisted: wanted.filter((tool) => !known.includes(tool)).map(({ toolId }) => toolId) };
}

export const noTools: ToolsOf = () => null;

interface ReasonDocuments {
  policies: readonly { id: string; condition: string | null; action: string | null }[];
  routineModels: readonly { routine: { id: string }; graph: { nodes: ReadonlyMap<string, { action: string | null }> } }[];
}

/** The item of a reference. Lists that are not stored any more have no tools. */
export function itemOf(
  { tools, lists }: { tools: readonly { toolId: string; reasons: readonly Pick<ToolReason, 'by' | 'id'>[] }[]; lists: Readonly<Record<string, string>> },
  documents: ReasonDocuments,
  toolsOf: ToolsOf,
): InferItem {
  return {
    tools: tools.map(({ toolId, reasons }) => ({ toolId, reasons: reasons.map((reason) => reasonIn(documents, reason)) })),
    lists: Object.fromEntries(Object.entries(lists).map(([server, hash]) => [server, { hash, tools: toolsOf(hash) ?? [] }])),
  };
}

function reasonIn({ policies, routineModels }: ReasonDocuments, { by, id }: Pick<ToolReason, 'by' | 'id'>): ToolReason {
  if (by === 'policy') {
    const policy = policies.find((one) => one.id === id);
    return { by, id, condition: policy?.condition ?? null, action: policy?.action ?? null };
  }
  const [routineId, stepId = ''] = id.split(':');
  const model = routineModels.find(({ routine }) => routine.id === routineId);
  return { by, id, condition: null, action: model?.graph.nodes.get(stepId)?.action ?? null };
}

export function reasonKeyOf({ by, id }: Pick<ToolReason, 'by' | 'id'>): string {
  return `${by} ${id}`;
}

export function serverOf(toolId: string): string {
  return toolId.slice(0, toolId.indexOf(':'));
}

function isListed(toolId: string, lists: ToolListsByServer): boolean {
  const server = serverOf(toolId);
  return Object.hasOwn(lists, server) && (lists[server]?.tools.some(({ name }) => `${server}:${name}` === toolId) ?? false);
}
