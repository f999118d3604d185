import type { Annotation, FileAnnotation } from '#shared/contracts/router/chat-completion.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { PipelineEntry } from '#shared/contracts/router/router-metadata.ts';
import type { GuardedGetter } from '#shared/http/guarded-get.ts';
import type { Answer } from '#shared/surfaces/answer.ts';
import type { Candidate } from '../call/candidates.ts';
import type { CallSignal } from '../call-signal.ts';
import type { PluginEngines } from './engines.ts';
import type { PdfTexts } from './files/pdf-texts.ts';

/** One search by an engine of the router. */
export interface RouterSearch {
  /** As requests name it. */
  engine: string;
  /** Pages that it found. */
  results: number;
}

/** A call on its way to its candidates. */
export interface StagedCall {
  /** To route. */
  request: ChatRequest;
  /** Stated behind the text of the answer. */
  annotations: readonly Annotation[];
  /** Items of messages that a stage has put in the place of files: no words of the user. */
  fromFiles: ReadonlySet<object>;
  /** Whether PDFs were left to the endpoints that take them, and may be read for others. */
  hasUnreadFiles: boolean;
  /** Whether the endpoint searches the web: those that can't are left out. */
  isSearchNative: boolean;
  /** The web search that the router made for it; null: none. */
  search: RouterSearch | null;
  /** What the stages cost the caller once the call has an answer, in billionths of a US dollar. */
  costNano: number;
}

/** For `openrouter_metadata.pipeline`. */
export type PipelineReport = (entry: PipelineEntry) => void;

/** What reads the files of calls. */
export interface FileTools {
  /** Of PDFs. */
  texts: PdfTexts;
  /** For files at URLs of callers. */
  getter: Pick<GuardedGetter, 'get'>;
}

/** What a stage has beside the call. */
export interface StageContext {
  signal: CallSignal;
  engines: PluginEngines;
  /** Null: files can't be read. */
  files: FileTools | null;
  /** Of the call, in epoch milliseconds. */
  nowMs: number;
  /** Of the caller's request: the field that has its messages. */
  messagesField: string;
  /** Id of the model that is asked for first. */
  modelOf(request: ChatRequest): string;
  /** What would be tried, best first. @throws as `candidatesFor` */
  candidatesOf(request: ChatRequest): readonly Candidate[];
  /** Whether some endpoint of its models searches the web by itself. */
  searchesNatively(request: ChatRequest): boolean;
  /**
   * What the stages have made of the call before. They run again for endpoints that take no files, which get the text of PDFs that were left unread. Absent: they
   * run for the first time.
   */
  before?: StagedCall | undefined;
  /** Whether some endpoint of its models may be sent files. */
  takesFiles(request: ChatRequest): boolean;
  /** Call it when a file was read: an error of the call states what it had read. Absent: it does not. */
  fileRead?: ((annotation: FileAnnotation) => void) | undefined;
  /** What the stage has done, also before it throws; absent: the caller does not want to know. */
  report?: PipelineReport | undefined;
}

/** Before the candidates are chosen. @returns the call to route @throws SwitchyardError to end the call: no provider is asked, and nothing falls back */
export type RequestStage = (staged: StagedCall, context: StageContext) => Promise<StagedCall>;

/**
 * Between provider and surface. Called per attempt, with the answer that the transformed parts are added to; returns what each batch becomes. A batch without
 * content is not published.
 */
export type PartTransform = (answer: Answer) => (parts: readonly ProviderPart[]) => readonly ProviderPart[];

/** Behind a whole answer; streams have none. @throws SwitchyardError to end the call */
export type AnswerTransform = (answer: Answer, request: ChatRequest, signal: CallSignal, report?: PipelineReport) => Promise<Answer>;

/** A file and a row in a table (stages.ts, plugin-stages.ts). It has a function for each position that it takes in the pipeline. */
export interface Stage {
  appliesTo(request: ChatRequest): boolean;
  request?: RequestStage;
  parts?: PartTransform;
  answer?: AnswerTransform;
}

/** A stage of a plugin applies to requests that ask for the plugin. */
export type PluginStage = Omit<Stage, 'appliesTo'>;
