/** A volume as containers can mount it. */
export interface ReadyVolume {
  /** undefined: an image volume, which the runtime mounts. */
  readonly hostPath: string | undefined;
  readonly readOnly: boolean;
  readonly image?: { readonly reference: string; readonly policy: string | undefined } | undefined;
  readonly block?: boolean | undefined;
  /** Its files are on another machine, which may be away: remote-volumes.ts. */
  readonly isRemote?: boolean | undefined;
  /** fsGroup applies: it is this pod's to give away. */
  readonly managed: boolean;
  /** To which its files are open: the pod's processes are of it. */
  readonly group?: number | undefined;
  /** How full it is can be asked of its file system: no driver tells. */
  readonly isMeasured?: boolean | undefined;
  /** Whose file system that is; absent: the pod's own. */
  readonly claim?: { readonly namespace: string; readonly claim: string } | undefined;
}
