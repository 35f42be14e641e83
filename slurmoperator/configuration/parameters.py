"""The parameters of each of Slurm's configuration files, and what it takes to change one.

Sources: slurm.conf(5), slurmdbd.conf(5), cgroup.conf(5), gres.conf(5) of Slurm 26.05, and the tables of parameters in its
source (`src/common/read_config.c`, `src/slurmdbd/read_config.c`, `src/interfaces/cgroup.c`, `src/interfaces/gres.c`).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


class ChangeTakes(enum.IntEnum):
    """What a change needs to take effect, from the least to the most."""

    RECONFIGURE = 1
    RESTART_SLURMDBD = 2
    RESTART_SLURMCTLD = 3
    RESTART_ALL = 4
    REFUSED = 5
    """The change would lose jobs: there must be none, and the daemons must be stopped."""


class ParameterKind(enum.Enum):
    """What a value may be."""

    TEXT = "text"
    NUMBER = "number"
    SWITCH = "switch"
    REPEATED = "repeated"
    """It may appear on several lines, each with parameters of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a file."""

    name: str
    kind: ParameterKind
    takes: ChangeTakes = ChangeTakes.RECONFIGURE
    own: frozenset[str] = frozenset()
    """What may follow it on its line, in lower case."""


_NUMBERS: Final = """
    AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout CompleteWait DefCPUPerGPU DefMemPerCPU DefMemPerGPU
    DefMemPerNode
    EioTimeout EpilogMsgTime EpilogTimeout FairShareDampeningFactor FastSchedule FirstJobId
    GroupUpdateForce GroupUpdateTime HealthCheckInterval HealthCheckTimeout InactiveLimit
    JobCompPort JobFileAppend JobRequeue KeepAliveTime KillOnBadExit KillWait MaxArraySize MaxBatchRequeue
    MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode
    MessageTimeout MinJobAge OverTimeLimit PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare
    PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS PrologEpilogTimeout PrologTimeout
    PropagatePrioProcess ResumeRate ResumeTimeout ResvOverRun ReturnToService SchedulerTimeSlice
    SlurmctldTimeout SlurmdPort SlurmdTimeout SlurmSchedLogLevel SuspendRate SuspendTimeout TCPTimeout
    TreeWidth UnkillableStepTimeout VSizeFactor WaitTime
"""
_SWITCHES: Final = """
    AccountingStoreJobComment AllowSpecResourcesUsage DisableRootJobs PriorityFavorSmall TrackWCKey UsePAM
"""
_TEXTS: Final = """
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageHost
    AccountingStorageParameters AccountingStoragePass AccountingStorageTRES AccountingStorageType
    AccountingStorageUser AccountingStoreFlags AcctGatherEnergyType AcctGatherFilesystemType
    AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherProfileType AuthAltParameters AuthAltTypes
    AuthInfo AuthType BackupAddr BackupController BcastExclude BcastParameters BurstBufferParameters
    BurstBufferType CertgenParameters CertgenType CertmgrParameters CertmgrType CliFilterParameters
    CliFilterPlugins ClusterName CommunicationParameters ControlAddr ControlMachine CoreSpecPlugin CpuFreqDef
    CpuFreqGovernors CredType CryptoType DataParserParameters DebugFlags DependencyParameters
    EnforcePartLimits ExtSensorsFreq ExtSensorsType FederationParameters GetEnvTimeout GpuFreqDef GresTypes HashPlugin HealthCheckNodeState
    HealthCheckProgram HttpParserType InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams
    JobAcctGatherType JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompType
    JobCompUser JobContainerType JobCredentialPrivateKey JobCredentialPublicCertificate JobSubmitPlugins
    LaunchParameters LaunchType LicenseParameters Licenses LogTimeFormat MailDomain MailProg MCSParameters
    MCSPlugin MetricsAuthUsers MetricsParameters MetricsType MpiDefault MpiParams NamespaceType
    NodeFeaturesPlugins PluginDir PlugStackConfig PowerParameters PowerPlugin PreemptExemptTime PreemptMode
    PreemptParameters PreemptType PrEpParameters PrEpPlugins PriorityCalcPeriod PriorityDecayHalfLife
    PriorityFlags PriorityMaxAge PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin
    PriorityType PriorityUsageResetPeriod PriorityWeightTRES PrivateData ProctrackType PrologFlags
    PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit
    RequeueExitHold ResumeFailProgram ResumeProgram ResvEpilog ResvProlog RoutePlugin SallocDefaultCommand
    SbcastParameters SchedulerParameters SchedulerType ScronParameters SelectType SelectTypeParameters
    SlurmctldAddr SlurmctldDebug SlurmctldHttpAuthParameters SlurmctldLogFile SlurmctldParameters
    SlurmctldPidFile SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug
    SlurmdDebug SlurmdHttpAuthParameters SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdSpoolDir
    SlurmdSyslogDebug SlurmdUser SlurmSchedLogFile SlurmUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation
    SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendTime SwitchParameters SwitchType
    TaskEpilog TaskPlugin TaskPluginParam TaskProlog TLSParameters TLSType TmpFS TopologyParam TopologyPlugin
    UnkillableStepProgram UrlParserType X11Parameters
"""

_NODE_LINE: Final = """
    BcastAddr Boards CoreSpecCount CoresPerSocket CPUs CPUSpecList CpuBind Feature Features Gres GresConf MemSpecLimit
    NodeAddr NodeHostname Parameters Port Procs RealMemory Reason RestrictedCoresPerGPU Sockets SocketsPerBoard State
    SuspendTime ThreadsPerCore TmpDisk Topology TRESWeights Weight
"""
_PARTITION_LINE: Final = """
    AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DefCPUPerGPU DefMemPerCPU DefMemPerGPU
    DefMemPerNode Default DefaultTime DenyAccounts DenyQos DisableRootJobs ExclusiveUser ExclusiveTopo Exclusive
    GraceTime Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode MaxTime MaxNodes MinNodes Nodes
    OverSubscribe OverTimeLimit PowerDownOnIdle PreemptMode Priority PriorityJobFactor PriorityTier QOS RootOnly
    ReqResv ResumeTimeout SelectTypeParameters Shared State SuspendTime SuspendTimeout Topology TRESBillingWeights
"""
_LINES: Final = {
    "NodeName": _NODE_LINE,
    "PartitionName": _PARTITION_LINE,
    "NodeSet": "Feature Nodes",
    "DownNodes": "Reason State",
    "PowerAction": "Location Program",
    "SlurmctldHost": "",
    "Prolog": "",
    "Epilog": "",
    "PrologSlurmctld": "",
    "EpilogSlurmctld": "",
}

REFUSED_LIVE: Final = {
    "ClusterName": "slurmctld does not start with the state of a cluster of another name",
    "StateSaveLocation": "slurmctld would start without its state, and all jobs would be lost",
    "SlurmUser": "slurmctld could not read its own state",
    "AuthType": "running steps could no longer report (slurm.conf(5))",
    "CredType": "running steps could no longer report",
    "SelectType": "only select/cons_tres supports nodes that come and go, as workers do",
    "SwitchType": "the records of all jobs may be lost (slurm.conf(5))",
    "SlurmdSpoolDir": "slurmd would not find the steps that run on its node",
}
"""Why a parameter must not change while jobs run."""

COSTS_ONLY_JOBS: Final = frozenset({"SwitchType"})
"""Those of `REFUSED_LIVE` that may change while Slurm has neither jobs nor nodes to run them on."""

PLAIN: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"selecttype": ("select/cons_tres",), "switchtype": ("switch/none",)}
)
"""Defaults of `REFUSED_LIVE` parameters: writing out the default is not a change."""

_RESTARTS_ALL: Final = frozenset(
    {
        "AuthAltTypes",
        "CommunicationParameters",
        "HashPlugin",
        "PluginDir",
        "SlurmctldPort",
        "SlurmdPort",
        "SlurmdUser",
        "TLSParameters",
        "TLSType",
    }
)
"""Listening settings, and settings that all daemons must share to be able to talk."""
_RESTARTS_SLURMCTLD: Final = frozenset(
    {"AccountingStorageType", "SlurmctldAddr", "SlurmctldHost", "SlurmctldPidFile"}
)


def _takes(name: str) -> ChangeTakes:
    if name in REFUSED_LIVE:
        return ChangeTakes.REFUSED
    if name in _RESTARTS_ALL:
        return ChangeTakes.RESTART_ALL
    return ChangeTakes.RESTART_SLURMCTLD if name in _RESTARTS_SLURMCTLD else ChangeTakes.RECONFIGURE


def _parameters(**by_kind: str) -> Mapping[str, Parameter]:
    return MappingProxyType(
        {
            name.lower(): Parameter(name=name, kind=ParameterKind[kind], takes=_takes(name))
            for kind, names in by_kind.items()
            for name in names.split()
        }
    )


def _repeated(lines: Mapping[str, str]) -> Mapping[str, Parameter]:
    return MappingProxyType(
        {
            name.lower(): Parameter(
                name=name,
                kind=ParameterKind.REPEATED,
                takes=_takes(name),
                own=frozenset(own.lower().split()),
            )
            for name, own in lines.items()
        }
    )


SLURM_CONF: Final[Mapping[str, Parameter]] = MappingProxyType(
    {**_parameters(TEXT=_TEXTS, NUMBER=_NUMBERS, SWITCH=_SWITCHES), **_repeated(_LINES)}
)
"""By name in lower case: Slurm ignores case."""

SLURMDBD_CONF: Final[Mapping[str, Parameter]] = _parameters(
    SWITCH="""
        AllowNoDefAcct AllResourcesAbsolute ArchiveEvents ArchiveJobs ArchiveJobScript ArchiveJobEnv ArchiveResvs
        ArchiveSteps ArchiveSuspend ArchiveTXN ArchiveUsage DisableCoordDBD DisableArchiveCommands DisableRollups
        TrackWCKey TrackSlurmctldDown
    """,
    NUMBER="""
        CommitDelay DbdPort JobPurge MaxPurgeLimit MessageTimeout PurgeEventMonths PurgeJobMonths PurgeStepMonths
        PurgeSuspendMonths PurgeTXNMonths PurgeUsageMonths StepPurge StoragePort TCPTimeout
    """,
    TEXT="""
        ArchiveDir ArchiveScript AuthAltTypes AuthAltParameters AuthInfo AuthType CommunicationParameters DbdAddr
        DbdBackupHost DbdHost DebugFlags DebugLevel DebugLevelSyslog DefaultQOS HashPlugin LogFile LogTimeFormat
        MaxQueryTimeRange Parameters PidFile PluginDir PrivateData PurgeEventAfter PurgeJobAfter PurgeResvAfter
        PurgeStepAfter PurgeSuspendAfter PurgeTXNAfter PurgeUsageAfter PurgeJobScriptAfter PurgeJobEnvAfter
        SlurmUser StorageBackupHost StorageHost StorageLoc StorageParameters StoragePass StoragePassScript
        StorageType StorageUser TLSParameters TLSType
    """,
)

CGROUP_CONF: Final[Mapping[str, Parameter]] = _parameters(
    SWITCH="""
        CgroupAutomount CgroupJobIdPaths ConstrainCores ConstrainRAMSpace ConstrainSwapSpace MemoryLimitEnforcement
        ConstrainDevices IgnoreSystemd IgnoreSystemdOnFailure EnableControllers SignalChildrenProcesses
    """,
    NUMBER="MinRAMSpace MemorySwappiness SystemdTimeout",
    TEXT="""
        AllowedRAMSpace MaxRAMPercent AllowedSwapSpace MaxSwapPercent MemoryLimitThreshold CgroupMountpoint
        CgroupSlice AllowedDevicesFile CgroupPlugin EnableExtraControllers
    """,
)

_GRES_LINE = "AutoDetect Count Cores CPUs File Files Flags Links MultipleFiles Name Type"
GRES_CONF: Final[Mapping[str, Parameter]] = _repeated(
    {"AutoDetect": _GRES_LINE, "Name": _GRES_LINE, "NodeName": _GRES_LINE}
)

FILES: Final[Mapping[str, Mapping[str, Parameter]]] = MappingProxyType(
    {
        "slurm.conf": SLURM_CONF,
        "slurmdbd.conf": SLURMDBD_CONF,
        "cgroup.conf": CGROUP_CONF,
        "gres.conf": GRES_CONF,
    }
)
"""The files that we read; others are passed on unread."""
